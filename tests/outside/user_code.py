"""What a user writes, with the types that an editor is to know."""

from pathlib import Path

import predilect
from predilect.data import ItemFeatures
from predilect.errors import DataError
from predilect.models import SingleUserGP

answers: predilect.Comparisons = predilect.read(Path("votes.csv"), columns={"who": "judge"})
print(answers.reading, answers.n_answers + 0.5)
items = ItemFeatures.from_frame({"item": ["tea", "milk"], "price": [1.0, 2.0]})
model: predilect.Population = predilect.Population(random_state=1).fit(answers, items=items)
try:
    board = model.rank("ann", scale="elo", base=1000.0)
except DataError as error:
    print(error)
probabilities = model.predict_proba({"left": ["tea"], "right": ["milk"]})
print(probabilities.shape[0] + 1)
decision = model.decide("ann", ["tea", "milk"], cost_wrong=10.0)
print(decision.action.upper(), decision.probability + 0.1)
verdict = model.verdict()
print(verdict.favours, model.seed_ + 1)
model.update(user="ann", left="tea", right="milk", outcome=1).forget(user="ann").save("model")
loaded = predilect.load("model")
alone = SingleUserGP().fit(answers)
small = model.compress(keep=5)
print(small.kept("ann")[0], [finding.message for finding in predilect.check(answers)])
