"""Every published statement of the Hierarchy study's figures beside the model, whether it holds or not: those that `tierscope reproduce hierarchy` judges.

Small files are fitted, so other seeds count: a statement must hold with 16 of 20. Nothing is fitted to large files, but H-F2-14 bounds the bandwidth of the SSDs.
"""

from collections.abc import Sequence

from tierscope.papers.hierarchy_cases import ENOUGH, FEW_SEEDS, SEEDS, TITLES, combined
from tierscope.papers.hierarchy_statements import STATEMENTS, Cases, Statement, StatementAnswer
from tierscope.papers.hierarchy_sweeps import FEW_RATES, LARGE_60, RATES, case_study, sweep_of, with_seed
from tierscope.papers.rows import rows_of
from validation.table import Row


def rows(short: bool) -> list[Row]:
    studies = {case: case_study(case) for case in TITLES}
    seen = [
        Cases(
            *(
                sweep_of(with_seed(study, seed), RATES if case == LARGE_60 else FEW_RATES)
                for case, study in studies.items()
            )
        )
        for seed in (SEEDS[:FEW_SEEDS] if short else SEEDS)
    ]
    return [row_of(statement, [statement.judge(cases) for cases in seen]) for statement in STATEMENTS]


def row_of(statement: Statement, answers: Sequence[StatementAnswer]) -> Row:
    verdict = combined(statement, answers)
    met = verdict.outcome == "holds"
    return Row(
        "fugaku",
        f"{statement.id} {rows_of('hierarchy')[statement.id].published}",
        verdict.ours,
        f"holds with {ENOUGH:.0%} of seeds",
        met,
        f"{verdict.source}; {verdict.why}",
        "" if met else statement.why,
    )
