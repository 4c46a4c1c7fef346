"""What a trace says about a model: roles, similarity, flow, explanation, alignment."""

from attlas.analysis.ablation import AblatedHead, HeadAblation, head_ablation
from attlas.analysis.adversary import Adversary, adversary
from attlas.analysis.alignment import argmax_links, argmax_links_of_sources, threshold_links
from attlas.analysis.clustering import Merge, Tree, clustered
from attlas.analysis.correlation import (
    Correlation,
    gradient_correlation,
    leave_one_out_correlation,
    product_correlation,
)
from attlas.analysis.dependencies import DependencyTable, Found
from attlas.analysis.erasure import Erased, Flips, SingleErasure, multi_erasure, single_erasure
from attlas.analysis.flow import attention_flow
from attlas.analysis.focus import Focus
from attlas.analysis.gate import gated
from attlas.analysis.importance import HeadImportance, head_importance
from attlas.analysis.kendall import kendall_tau
from attlas.analysis.norms import ValueNorms
from attlas.analysis.output import jensen_shannon, total_variation
from attlas.analysis.permutation import PermutationDistance, permutation_distance
from attlas.analysis.pharaoh import (
    Reference,
    parse_links,
    parse_reference,
    read_links,
    read_reference,
    write_links,
)
from attlas.analysis.projections import Projections
from attlas.analysis.pruning import Pruned, pruning_curve
from attlas.analysis.repeated import repeated
from attlas.analysis.role import ROLES, THRESHOLDS, Role
from attlas.analysis.roles import role_of, roles
from attlas.analysis.roles_table import RoleTable
from attlas.analysis.rollout import rollout
from attlas.analysis.similarity import diversity, head_divergences, layer_divergences
from attlas.analysis.sources import hearing_sources
from attlas.analysis.symmetrisation import (
    flipped,
    grow_diagonal,
    grow_diagonal_final,
    intersection,
    symmetrised,
    union,
)
from attlas.analysis.syntax import syntax
from attlas.analysis.uniformity import uniform_distance
from attlas.analysis.value_map import ValueMap, value_map
from attlas.analysis.words import CAUTION, in_words
from attlas.analysis.wordwise import between_words, word_numbers

__all__ = [
    "CAUTION",
    "ROLES",
    "THRESHOLDS",
    "AblatedHead",
    "Adversary",
    "Correlation",
    "DependencyTable",
    "Erased",
    "Flips",
    "Focus",
    "Found",
    "HeadAblation",
    "HeadImportance",
    "Merge",
    "PermutationDistance",
    "Projections",
    "Pruned",
    "Reference",
    "Role",
    "RoleTable",
    "SingleErasure",
    "Tree",
    "ValueMap",
    "ValueNorms",
    "adversary",
    "argmax_links",
    "argmax_links_of_sources",
    "attention_flow",
    "between_words",
    "clustered",
    "diversity",
    "flipped",
    "gated",
    "gradient_correlation",
    "grow_diagonal",
    "grow_diagonal_final",
    "head_ablation",
    "head_divergences",
    "head_importance",
    "hearing_sources",
    "in_words",
    "intersection",
    "jensen_shannon",
    "kendall_tau",
    "layer_divergences",
    "leave_one_out_correlation",
    "multi_erasure",
    "parse_links",
    "parse_reference",
    "permutation_distance",
    "product_correlation",
    "pruning_curve",
    "read_links",
    "read_reference",
    "repeated",
    "role_of",
    "roles",
    "rollout",
    "single_erasure",
    "symmetrised",
    "syntax",
    "threshold_links",
    "total_variation",
    "uniform_distance",
    "union",
    "value_map",
    "word_numbers",
    "write_links",
]
