"""The data sets, by name: ``TASKS[name](seed)`` is a :class:`benchmarks.task.Task`, the same for the same seed."""

from benchmarks.datasets import arguments, choices, judgements, ratings, simulated, sushi
from benchmarks.task import Loader

__all__ = ["GROUPS", "MOST_SEEDS", "TASKS", "default_seeds"]

TASKS: dict[str, Loader] = (
    sushi.TASKS | judgements.TASKS | choices.TASKS | ratings.TASKS | simulated.TASKS | arguments.TASKS
)

# Names for several tasks at once.
GROUPS = {
    "all": list(TASKS),
    "ground": [*sushi.PROTOCOLS, *judgements.TASKS],
    "original": list(sushi.ORIGINAL),
    "crowds": [*sushi.PROTOCOLS, *sushi.ORIGINAL, "ukp-topics"],
}
# Splits that exist only so many times.
MOST_SEEDS = {name: repeats for name, (_, repeats, _, _) in sushi.ORIGINAL.items()}
MOST_SEEDS |= dict.fromkeys(arguments.TASKS, arguments.N_TOPICS)
# Large or slow tasks; ten seeds otherwise.
_FEWER_SEEDS = {"sushi-b": 3, "ukpconvarg": 3, "movielens-200": 3, "swissmetro": 3, "tax-plans": 3, "polis": 5}


def default_seeds(task: str) -> list[int]:
    """The seeds of the published table; of a part of a task (``task@share=10``) those of the task."""
    task = task.partition("@")[0]
    if task in arguments.TASKS:
        return list(range(arguments.N_TOPICS))
    fewer = 5 if task.startswith(("generator", "llmfao", "ukpconvarg")) else 10
    return list(range(min(_FEWER_SEEDS.get(task, fewer), MOST_SEEDS.get(task, 10))))
