"""Beam search over fixed buffers."""

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.data.vocabulary import END
from attlas.decoding.config import DecodingConfig
from attlas.decoding.scoring import Constraints, Finished, Hypothesis, to_hypotheses
from attlas.decoding.static_rows import NEVER, StaticRows, put
from attlas.decoding.surface import Surface, best_texts
from attlas.models.transformer.static_steps import StaticDecoder
from attlas.ops.topk import largest


class BeamRows(StaticRows):
    """The hypotheses of a beam in neighbouring rows, as in `beam_search`.

    A hypothesis that is not possible, such as all but one before the first token, has log P = −∞.

    Args:
        surface: Makes the texts of a list different.
    """

    _lasting = (
        *StaticRows._lasting, "_alive", "_ceiling", "_cut", "_keys", "_ended_tokens",
        "_ended_lengths", "_ended_scores", "_ended_log_p", "_ended_keys",
    )  # fmt: skip

    def __init__(
        self,
        decoder: StaticDecoder,
        config: DecodingConfig,
        rules: Constraints,
        prefix_length: int,
        surface: Surface | None,
    ) -> None:
        super().__init__(decoder, config, rules, prefix_length)
        self._width, self._n_best = config.num_beams, config.n_best
        self._exhaustive = config.exhaustive
        self._surface = surface if config.n_best > 1 else None
        hashes = None if self._surface is None else self._surface.hashes
        device = self._last.device
        self._hashes = None if hashes is None else hashes.to(device)
        self._alive, self._cut = (
            torch.full(self._last.shape, NEVER, dtype=self._sums, device=device) for _ in range(2)
        )
        self._ceiling = self._alive.new_full((len(self._alive),), float("inf"))
        self._keys: Tensor | None = None if hashes is None else torch.zeros_like(self._last)
        # Where texts are compared by their bytes, some that differ may still read alike.
        capacity = config.n_best if self._surface is None else 2 * config.n_best
        shape = (len(self._last), capacity)
        self._ended_lengths = torch.zeros(shape, dtype=torch.long, device=device)
        self._ended_tokens = self._tokens.new_zeros(*shape, decoder.target_length)
        self._ended_scores, self._ended_log_p = (
            torch.full(shape, NEVER, dtype=self._sums, device=device) for _ in range(2)
        )
        self._ended_keys: Tensor | None = (
            None if hashes is None else torch.zeros_like(self._ended_lengths)
        )

    def begin(self, places: Int[Tensor, " begun"], constraints: Constraints) -> None:
        super().begin(places, constraints)
        for tensor in (self._alive, self._cut, self._ended_scores, self._ended_log_p):
            tensor.index_fill_(0, places, NEVER)
        self._alive[:, 0].index_fill_(0, places, 0.0)
        self._ceiling.index_fill_(0, places, float("inf"))
        for keys in (self._keys, self._ended_keys):
            if keys is not None:
                keys.index_fill_(0, places, 0)

    def step(self, source_length: int, target_length: int) -> None:
        live, position = ~self.done, self._position.unsqueeze(1)
        places, width = self._last.shape
        followed = live.unsqueeze(1) & ~self._alive.isneginf()
        log_p, coverage = self._log_probabilities(source_length, target_length, followed)

        # One more than the beam, so that enough are left when END is among them.
        best, ids = (part.view(places, width, -1) for part in largest(log_p, width + 1))
        totals, is_end = self._alive.unsqueeze(-1) + best, ids == END
        best_of_all = largest(totals.flatten(1), width)[1]
        is_best = torch.zeros_like(is_end.flatten(1)).scatter(1, best_of_all, True).view_as(is_end)
        ended = totals.masked_fill(~(is_end & is_best), NEVER).amax(-1)
        finished = self._joined(ended, coverage)

        best_scores, order = largest(totals.masked_fill(is_end, NEVER).flatten(1), width)
        cut = (self._max_length <= self._position) | torch.isneginf(best_scores[:, 0])
        longest = self._max_length if self._exhaustive else self._position + 1
        bound = self._penalties.bound(best_scores[:, 0], longest + 1)
        over = cut | (bound <= finished.scores[:, self._n_best - 1])

        unfinished = self._alive.masked_fill(~(cut.unsqueeze(1) & ended.isneginf()), NEVER)
        put(self._cut, unfinished, live & over)
        for held, new in (
            (self._ended_tokens, finished.tokens),
            (self._ended_lengths, finished.lengths),
            (self._ended_scores, finished.scores),
            (self._ended_log_p, finished.log_probabilities),
            (self._ended_keys, finished.keys),
        ):
            if held is not None and new is not None:
                put(held, new, live)
        if self._n_best > 1:
            first = finished.scores[:, 0]
            settled = (bound <= first) & self._ceiling.isposinf()
            put(self._ceiling, torch.where(settled, first, self._ceiling), live)

        # What is cut off stays as it is, with the coverage that it had.
        goes_on = live & ~over
        parents = order // ids.shape[-1]
        token = ids.flatten(1).gather(1, order)
        own = torch.arange(width, device=parents.device).expand_as(parents)
        parents = torch.where(goes_on.unsqueeze(1), parents, own)
        if self._keys is not None and self._hashes is not None:
            grown = self._hashes.grown(self._keys.gather(1, parents), token, begins=position == 0)
            put(self._keys, grown, goes_on)
        tokens = self._tokens.gather(1, parents.unsqueeze(-1).expand(self._tokens.shape))
        index = position.unsqueeze(1).expand(-1, width, 1)
        put(self._tokens, tokens.scatter(2, index, token.unsqueeze(-1)), goes_on)
        if coverage is not None and self._coverage is not None:
            chosen = coverage.gather(1, parents.unsqueeze(-1).expand(coverage.shape))
            put(self._coverage, chosen, goes_on)
        first_rows = torch.arange(places, device=parents.device).unsqueeze(1) * width
        self.decoder.reorder((first_rows + parents).flatten(), target_length)
        put(self._alive, best_scores, goes_on)
        put(self._last, token, goes_on)
        self._position.add_(goes_on)
        self.done.logical_or_(over)

    def _joined(self, ended: Tensor, coverage: Tensor | None) -> Finished:
        """The finished ones with those that end now, but for what comes too late to be the best."""
        position = self._position.unsqueeze(1)
        scores = self._scored(ended, position + 1, coverage, self.decoder.token_mask)
        if self._n_best > 1:
            late = scores > self._ceiling.unsqueeze(1)
            scores, ended = scores.masked_fill(late, NEVER), ended.masked_fill(late, NEVER)
        before = Finished(
            self._ended_tokens,
            self._ended_lengths,
            self._ended_scores,
            self._ended_log_p,
            self._ended_keys,
        )
        return before.joined(self._tokens, scores, ended, self._keys, position)

    def results(self, places: Int[Tensor, " ended"]) -> tuple[Tensor, ...]:
        length, cut = self._position[places], self._cut[places]
        coverage = None if self._coverage is None else self._coverage[places]
        mask = self.decoder.token_mask[places]
        scores = self._scored(cut, length.unsqueeze(1), coverage, mask)
        finished = (
            self._ended_tokens,
            self._ended_scores,
            self._ended_log_p,
            self._ended_lengths,
        )
        return (
            *(part[places] for part in finished),
            self._tokens[places],
            scores,
            cut,
            length,
        )

    def lists(self, results: tuple[Tensor, ...]) -> list[list[Hypothesis]]:
        *finished, tokens, scores, cut, lengths = results
        lists = to_hypotheses(*finished)
        for place, length in enumerate(lengths.tolist()):
            part = slice(place, place + 1)
            lists[place] += to_hypotheses(tokens[part, :, :length], scores[part], cut[part])[0]
        return [best_texts(found, self._n_best, self._surface) for found in lists]
