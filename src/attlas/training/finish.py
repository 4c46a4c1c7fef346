"""The end of a training."""

from attlas.runs import AVERAGED, BEST, Checkpoint, load_weights, numbered
from attlas.training.events import Outcome
from attlas.training.judge import Judge
from attlas.training.saver import Saver
from attlas.training.state import TrainingState


def finish(
    state: TrainingState, reason: str, saver: Saver, judge: Judge, planned: int | None
) -> Outcome:
    """Measure what was not yet measured, the average too; point `best` at the best of all.

    `state` is saved. None of this is entered in it: a training that goes on knows nothing of it.
    """
    learner, shelf, teller = saver.learner, saver.shelf, judge.teller
    best = state.best
    name = None if state.best_update is None else numbered(state.best_update)
    if state.validated != state.update:
        value, better = judge.judged(
            learner.as_whole(judge.task.build), numbered(state.update), state, best
        )
        if better:
            best, name = value, numbered(state.update)
    weights = saver.averaged(state)
    if weights is not None:
        shelf.write(AVERAGED, Checkpoint(weights, facts={"update": state.update}))
        model = judge.task.build().to(learner.device)
        load_weights(model, weights, saver.folder)
        value, better = judge.judged(model, AVERAGED, state, best)
        if better:
            best, name = value, AVERAGED
    if name is not None:
        shelf.point(BEST, name)
    outcome = Outcome(
        **teller.clock.moment(state),
        reason=reason,
        planned=planned,
        criterion=judge.criterion.criterion,
        best=None if best is None else best[0],
        checkpoint=name,
        folder=str(saver.folder),
    )
    teller.tell(outcome)
    teller.journal.sync()
    return outcome
