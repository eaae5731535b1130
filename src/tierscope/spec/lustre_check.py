"""What must hold of keys that place files on Lustre."""

from collections.abc import Iterator

from tierscope.spec.emulation import said
from tierscope.spec.problem import Problem
from tierscope.spec.study import Study, Tier

LUSTRE_KEYS = ("lustre_ost", "lustre_pool")


def placed_by(tier: Tier) -> str | None:
    """The key that places a tier's files, if one does."""
    return next((name for name in LUSTRE_KEYS if getattr(tier, name) is not None), None)


def lustre_problems(study: Study) -> Iterator[Problem]:
    tiers = study.system.tiers
    for number, tier in enumerate(tiers):
        if not (name := placed_by(tier)):
            continue
        key = f"system.tiers.{tier.name}"
        text = f"{key}.{said(tier, name)}"
        if tier.emulate:
            yield Problem(
                f"{key}.{name}",
                f"{text} works only on a real Lustre, but emulate = true; remove one of them: use servers and stripe_count for emulation",
            )
        if tier.lustre_ost is not None and tier.lustre_pool is not None:
            yield Problem(
                f"{key}.lustre_pool", f"{text} and {said(tier, 'lustre_pool')} exclude each other; remove one"
            )
        if study.placement.policy == "first-touch" and number < len(tiers) - 1:
            yield Problem(
                f"{key}.{name}",
                f"{text}, but with placement.policy: first-touch its files are copied by ranks; remove the key, or set policy: pinned",
            )
