"""``predilect compress``: keep the items that matter to each person."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from predilect.cli.options import JsonFlag, ModelFolder, QuietFlag
from predilect.cli.session import session

LossName = StrEnum("LossName", ["regret", "recommendation", "zero_one", "log"])  # purpose of a compressed model
CriterionName = StrEnum(
    "CriterionName", ["auto", "ucb", "voi", "ivm", "pairs", "random", "mean"]
)  # of the items to keep
PrecisionName = StrEnum("PrecisionName", ["half", "single", "double"])  # of the numbers kept
BoundName = StrEnum("BoundName", ["exact", "gp_ucb", "taylor"])  # meaning of the criterion ucb


def compress(
    model: ModelFolder,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to make, with the small model in it.")
    ],
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="SHARE",
            show_default="20%",
            help="Items that each person keeps: a number such as 10, or a share such as 20% or 0.2.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="N", help="Instead of --keep, items that all people keep together."),
    ] = None,
    loss: Annotated[
        LossName,
        typer.Option(
            "--loss",
            help="What it is for; its expected size is told. regret: utility lost by taking the item with the largest "
            "mean; recommendation: that this is not the best, per cent of the items; zero-one: pairs in the wrong "
            "order; log: log loss of new answers.",
        ),
    ] = LossName.regret,
    criterion: Annotated[
        CriterionName,
        typer.Option(
            "--criterion",
            help="What is kept. ucb: items that may be good; voi: that may beat the best; ivm: that are known best; "
            "mean: with the largest means; auto: what suits the loss.",
        ),
    ] = CriterionName.auto,
    ucb: Annotated[
        BoundName | None,
        typer.Option(
            "--ucb",
            show_default="exact",
            help="For --criterion ucb. exact: mean + beta variance / 2; gp-ucb: mean + kappa standard deviations; "
            "taylor: as the paper has it, for comparison.",
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option("--beta", show_default="1", help="For --ucb exact, taylor: how much what is unknown counts."),
    ] = None,
    kappa: Annotated[
        float | None, typer.Option("--kappa", show_default="1", help="For --ucb gp-ucb: the same, in deviations.")
    ] = None,
    local: Annotated[
        bool,
        typer.Option(
            "--local/--whole",
            help="Keep people apart, or (--whole, of --model joint or bonilla-gp) the covariance between people too: "
            "new people and items follow by features. Larger; what nobody keeps is known by its features alone.",
        ),
    ] = True,
    precision: Annotated[
        PrecisionName,
        typer.Option(
            "--precision",
            help="Digits of what is kept. half: variances of differences to 3 digits, means to 7; single: all to 7, in "
            "up to twice the bytes; double: 16 digits.",
        ),
    ] = PrecisionName.half,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace DIR if it holds a model.")] = False,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Cut the MODEL that predilect rank wrote down to the items that matter to each person.

    The small model answers predilect predict and predilect ask: pairs of kept items as the full model does (of gaspk by
    their scores), and items that were dropped for a person from the kept ones, with a warning.

    Example: predilect compress results --keep 20% --loss regret --out small
    """
    with session(quiet, json) as talk:
        from predilect._json import plain
        from predilect.compression.model import compress as compressed
        from predilect.errors import DataError
        from predilect.models.registry import load_model
        from predilect.models.saving import model_folder

        if out.exists() and not (force and (out / "model.json").is_file()):
            holds = "exists already" if (out / "model.json").is_file() else "exists, and holds no model"
            advice = "choose another folder, or replace it with --force" if "already" in holds else "choose another"
            raise DataError(f"{out} {holds}: {advice}")
        folder = model_folder(model)
        small = compressed(
            load_model(folder), keep, loss.value, criterion.value, budget=budget, local=local,
            precision=precision.value, random_state=seed, **_options_of_ucb(criterion, loss, ucb, beta, kappa),
        )  # fmt: skip
        small.save(out, overwrite=force)
        talk.written = str(out)
        size, size_full = _size(out), _size(folder)
        for line in small.describe():
            talk.say(line)
        ratio = f"{size_full / size:.1f} times smaller" if size < size_full else f"{size / size_full:.1f} times larger"
        talk.say(f"Written to {out}: {size} bytes, {ratio} than {folder}'s {size_full}.")
        if json:
            document: dict[str, Any] = {
                "schema": "predilect/compression", "version": 1, "of": small.report_["of"],
                "compressed": small.report_["compressed"], "loss": plain(small.report_["loss"]),
                "file_bytes": size, "file_bytes_full": size_full, "warnings": talk.warned, "written": str(out),
            }  # fmt: skip
            talk.document(document)


def _options_of_ucb(
    criterion: CriterionName, loss: LossName, ucb: BoundName | None, beta: float | None, kappa: float | None
) -> dict[str, Any]:
    """Options given for the criterion ucb, refused where something else chooses."""
    from predilect.compression.criteria import criterion_for
    from predilect.errors import DataError

    given = {"ucb": None if ucb is None else ucb.value, "beta": beta, "kappa": kappa}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen = criterion_for(loss.value) if criterion is CriterionName.auto else criterion.value
    if options and chosen != "ucb":
        why = f" (--loss {loss.value})" if criterion is CriterionName.auto else ""
        raise DataError(
            f"--{next(iter(options))} is for --criterion ucb, but items are chosen by {chosen}{why}. Say --criterion "
            "ucb, or leave it out"
        )
    useless = "beta" if ucb is BoundName.gp_ucb else "kappa"
    if useless in options:
        raise DataError(
            f"--{useless} is not used by --ucb {(ucb or BoundName.exact).value}: "
            + ("give --kappa" if useless == "beta" else "say --ucb gp-ucb, or give --beta")
        )
    return options


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
