"""Plans and studies as lines for people: --list, --dry-run and the summary of a campaign."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from collectors import commands, mask, profiler
from collectors.captures import PROMPT, STEPS
from collectors.host import Host
from collectors.schedule import Plan
from collectors.starting import FIRST_PORT
from collectors.study import DIRECT, Arm, Study
from collectors.study_file import read_study, shipped
from collectors.summary import Summary


def studies() -> Iterator[str]:
    """Every study that ships, with its arms and workloads."""
    for name in shipped():
        yield from study(read_study(name))
        yield ""
    yield "a study of your own is a .toml file: collect --study my.toml"


def study(one: Study) -> Iterator[str]:
    """A study's arms and workloads."""
    yield f"{one.name}: {_shown(one.title)}"
    for arm in one.arm:
        yield f"  arm {arm.name:18} {_shown(arm.about or arm.model)}"
    for work in one.workload:
        loads = ", ".join(str(load.concurrency) for load in work.loads)
        yield f"  workload {work.name:13} {_shown(work.about)}; in flight: {loads}"


def _shown(text: str) -> str:
    """A text of a study's author on one line, without what would steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def dry_run(plan: Plan, host: Host, gpus: tuple[int, ...]) -> Iterator[str]:
    """Every command of a plan, in order, as it would be run (ports are examples)."""
    yield from (f"# {note}" for note in plan.notes)
    for session in plan.sessions:
        ports: dict[str, list[str]] = {}
        port = host.port or FIRST_PORT
        for name in session.arms:
            arm = plan.study.arms[name]
            yield f"# start {session.start} of {name}"
            stem = (
                host.results / plan.study.name / name / ".servers" / f"p{session.start}.1-profile"
            )
            more = profiler.told(stem, by_flag=True).flags if plan.profiled else ()
            lines, ports[name] = _servers(plan.study, host, arm, port, gpus, more)
            port += arm.replicas + 2
            yield from lines
        for job in session.jobs:
            yield f"# {plan.study.name}/{job.arm}/{job.name}"
            folder = f"{host.results}/{plan.study.name}/{job.arm}/{job.name}"
            fronts = ports[job.arm]
            if job.profiled:
                yield (
                    f"# requests of {PROMPT} tokens decode, {job.concurrency} at once; POST "
                    f"{fronts[0]}/start_profile; {STEPS} steps; POST {fronts[0]}/stop_profile"
                )
                continue
            clients = commands.clients(host, plan.study, job, fronts=fronts, folder=folder)
            yield from (_line(command) for _, command in clients)


def _servers(
    one: Study,
    host: Host,
    arm: Arm,
    port: int,
    gpus: tuple[int, ...],
    more: tuple[str, ...] = (),
) -> tuple[list[str], list[str]]:
    """Lines that start an arm, and the addresses to drive."""
    lines, urls = [], []
    for replica in range(arm.replicas):
        mine = gpus[replica * arm.gpus : (replica + 1) * arm.gpus]
        line = commands.server(
            host, one, arm, port=port + replica, replica=replica, gpus=mine, more=more
        )
        lines.append(_line(line))
        urls.append(f"http://{commands.ADDRESS}:{port + replica}")
    if arm.router not in ("", DIRECT):
        front = port + arm.replicas
        lines.append(
            _line(commands.router(host, arm, port=front, workers=urls, prometheus=front + 1))
        )
        urls = [f"http://{commands.ADDRESS}:{front}"]
    return lines, urls


def _line(command: commands.Command) -> str:
    variables = mask.environment(command.env, {})
    sets = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return " ".join([*sets, shlex.join(mask.words(command.argv))])


def summary(told: Summary) -> Iterator[str]:
    """What became of a plan's runs."""
    for folder in told.halves:
        yield f"kept, unfinished: {folder} (a collect was killed there)"
    for run, reason in told.failed.items():
        yield f"failed: {run}: {reason}"
    if told.left:
        shown = ", ".join(told.left[:3]) + (" ..." if len(told.left) > 3 else "")
        yield f"not run: {len(told.left)} ({shown})"
    counts = [(len(told.made), "made"), (len(told.whole), "complete before")]
    counts += [(len(told.failed), "failed"), (len(told.left), "not run")]
    said = ", ".join(f"{count} {word}" for count, word in counts if count)
    yield f"{'stopped: ' + told.stopped + '; ' if told.stopped else ''}{said or 'nothing to run'}"
    if told.left or told.failed:
        yield "the same command goes on where this one ended"
