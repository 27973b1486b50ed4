"""Studies of choices: logit, mixed logit and latent classes, designs of questions, selection of attributes.

May import ``models`` and all below. Open first: ``mixed_logit/model.py``; ``designs.py`` for what is asked.
"""
