"""Trials: what the seed decides, and whether the job ended as expected."""

import random
import re
import statistics

LONGEST_S = 100  # no start takes longer: Open MPI notices a cut link after half a minute

# name: (what the job must do, whether it runs on two hosts). "ends": it fails and names the rank;
# "goes on": it ends as without a fault; "either": one of the two.
FAULTS = {
    "kill": ("ends", False),
    "abort": ("ends", False),
    "crash": ("ends", False),
    "exit": ("ends", False),
    "exception": ("ends", False),
    "uncaught": ("ends", False),
    "bad input": ("ends", False),
    "stop": ("ends", False),
    "pause": ("goes on", False),
    "memory": ("either", False),
    "out of memory": ("either", False),
    "descriptors": ("either", False),
    "disk full": ("disk", False),
    "host killed": ("ends", True),
    "link cut": ("link", True),
    "link slow": ("goes on", True),
}
NOT_RESTARTED = ("bad input", "disk full", "link cut")  # a restart would not help
OF_THE_WRITER = ("disk full", "descriptors")  # faults of rank 0, which saves
FROM_WITHIN = ("exit", "exception", "uncaught")  # faults that the rank itself causes

# Besides the rank, the messages must contain this text, if the rank could not report more.
CAUSES = {"kill": "by signal 9", "host killed": "by signal 9", "abort": "by signal 6",
          "crash": "by signal 11", "exit": "with exit code 3", "exception": "thrown by chaos",
          "uncaught": "by signal 6"}

# Points at which a rank is held for a fault, and how often it passes them; see
# tests/chaos/rank_in_trial.cc. Rank 0 commits and saves, also if the fault hits another rank.
POINTS = {
    "start": {"loaded": 1, "MPI_Init": 1, "MPI_Init_over": 1, "init_over": 1},
    "steps": {"LOAD_BATCH": 250, "FORWARD": 250, "BACKWARD": 250},
    "commit": {"COMMIT": 200, "connect": 100, "send": 200},
    "checkpoint": {"write": 12, "fsync": 8, "rename": 8},
    "evaluation": {"EVALUATE": 3},
    # Points of a job that was restarted after a rank was killed.
    "restart": {"loaded": 1, "MPI_Init": 1, "MPI_Init_over": 1, "init_over": 1},
    "shutdown": {"shutdown": 1, "MPI_Finalize": 1, "MPI_Finalize_over": 1, "ended": 1},
}
OF_RANK_0 = ("commit", "checkpoint")
COMMITS_WITHOUT_STORE = 12  # commits to the file only
BY_USER = "chaos: started again"
AGAIN = re.compile(r"(?m)^(?:.* hvdliterun warning\] starting again \(1 of .*|%s)$" % BY_USER)
SOON_S = {"start": 0.3, "restart": 0.3}  # other moments:
SOON_IN_STEPS_S = 0.03


class Trial:
    """Everything that the seed decides. `fault`, `moment` and `ranks` replace drawn values."""

    def __init__(self, seed, fault=None, moment=None, ranks=None):
        dice = random.Random(seed)
        drawn = {name: dice.random() for name in (
            "fault", "ranks", "rank", "first", "moment", "point", "count", "part", "held",
            "flags", "killed")}

        def pick(name, choices):
            return choices[int(drawn[name] * len(choices))]

        self.seed = seed
        self.fault = fault or pick("fault", list(FAULTS))
        self.expects, self.on_hosts = FAULTS[self.fault]
        self.ranks = ranks or pick("ranks", (2, 4) if self.on_hosts else (2, 3, 4))
        self.rank = 0 if self.fault in OF_THE_WRITER else int(drawn["rank"] * self.ranks)
        # The rank that is killed before "restart", and the step.
        self.first_rank = int(drawn["first"] * self.ranks)
        self.first_step = 30 + int(drawn["killed"] * 240)
        self.launch_flags = pick("flags", (
            [], [], ["--max-restarts", "3"], ["--max-restarts", "3", "--commit-memory"]))
        if self.fault in NOT_RESTARTED:
            self.launch_flags = []
        self.moment = moment or pick("moment", list(POINTS))
        if self.fault == "bad input":
            self.moment = "start"
        points = dict(POINTS[self.moment])
        if self.fault in ("exception", "uncaught") and self.moment == "shutdown":
            points = {"shutdown": 1}  # nothing throws later
        self.point = pick("point", list(points))
        if self.point in ("connect", "send") and "--commit-memory" not in self.launch_flags:
            self.point = "COMMIT"
        often = points[self.point]
        if self.point == "COMMIT" and "--commit-memory" not in self.launch_flags:
            often = COMMITS_WITHOUT_STORE
        self.count = 1 + int(drawn["count"] * often)
        self.part = drawn["part"]  # 0 to 1, for durations
        # The fault happens while the rank is at the point, or this long after.
        self.after_s = 0.0 if drawn["held"] < 0.5 else (
            self.part * SOON_S.get(self.moment, SOON_IN_STEPS_S))

    @property
    def ranks_of_host(self):
        return self.ranks // 2 if self.on_hosts else self.ranks

    @property
    def host(self):
        return self.rank // self.ranks_of_host

    def struck_ranks(self):
        """Returns the ranks that the fault hits; a message may name any of them."""
        if self.fault == "link cut":
            return list(range(self.ranks))  # each side loses the other
        if self.fault == "host killed":
            return [rank for rank in range(self.ranks)
                    if rank // self.ranks_of_host == self.host]
        return [self.rank]

    def watch(self):
        """Returns the point of the fault for rank_in_trial.cc."""
        again = self.moment == "restart" and bool(self.launch_flags)
        return "%s %d %d %d" % (self.point, self.count,
                                0 if self.moment in OF_RANK_0 else self.rank, again)

    def first_kill(self):
        """Returns the point at which a rank kills itself before "restart"."""
        return ("BACKWARD %d %d 0" % (self.first_step, self.first_rank)
                if self.moment == "restart" else "")

    def __str__(self):
        return "seed %d: %s, rank %d of %d%s, %s%s: %s %d%s%s" % (
            self.seed, self.fault, self.rank, self.ranks, " on 2 hosts" if self.on_hosts else "",
            self.moment, " after rank %d was killed in step %d" % (
                self.first_rank, self.first_step) if self.moment == "restart" else "",
            self.point, self.count, " + %.3f s" % self.after_s if self.after_s else "",
            "".join(" " + flag for flag in self.launch_flags))


# ---- Verdicts.

def failures(text):
    """Returns hvdliterun's messages about ranks that failed."""
    return [line for line in text.splitlines()
            if line.startswith("hvdliterun: ") and re.search(r"\brank \d+ .*failed", line)]


def names_rank(text, rank):
    """Whether hvdliterun's first message about a failure names this rank."""
    messages = failures(text)
    return bool(messages) and re.search(r"\brank %d\b" % rank, messages[0]) is not None


def tells_at_start(trial, text):
    """Whether ranks reported at the start that others were late. Before MPI has started, they
    cannot know which ones."""
    return (trial.moment in ("start", "restart")
            and "has been in hvdlite::init() for" in text)


def parts(trial, text):
    """Divides the text of a trial at "restart" at its first restart. For other trials, the first
    part is empty."""
    if trial.moment != "restart":
        return "", text
    before, *after = AGAIN.split(text, maxsplit=1)
    return before, "".join(after)


def misnamed(trial, text):
    """Returns what is wrong with the message about the fault; "" if nothing is."""
    if tells_at_start(trial, text):
        return ""
    if trial.fault == "link cut":
        first = "".join(failures(text)[:1])
        silent = re.search(r"\((\S+)\) has given no sign of life to rank \d+ \((\S+)\)", first)
        if silent and silent[1] == silent[2] and "another host" not in first:
            return "the message is about two ranks of one host"
        # Ranks that have nothing more to send do not notice it; mpirun does.
        if trial.moment == "shutdown" and "on node host%d\n" % trial.host in text:
            return ""
    if trial.fault in ("bad input", "exception") and "on rank %d: " % trial.rank in text:
        return ""  # all ranks know the error, and all have ended
    if not any(names_rank(text, rank) for rank in trial.struck_ranks()):
        return "the message does not name rank %d" % trial.rank
    cause = CAUSES.get(trial.fault, "")
    # A rank that was killed early is named by the others, which do not know the signal.
    if cause not in text and "; then rank " not in failures(text)[0]:
        return "the message does not contain '%s'" % cause
    return ""


def verdict(trial, status, text, same_as_undisturbed):
    """Returns what is wrong with the end of a job; "" if nothing is. `same_as_undisturbed`:
    whether its result is that of an undisturbed training."""
    if status is None:
        return "did not end within %d s" % LONGEST_S
    before, text = parts(trial, text)
    if trial.moment == "restart" and before and failures(before) and not names_rank(
            before, trial.first_rank):
        return "the first message does not name rank %d" % trial.first_rank
    if status == 0:
        # A trainer continues without a checkpoint if writing it throws.
        did_no_harm = same_as_undisturbed or (
            trial.fault == "exception" and "no checkpoint after" in text)
        if trial.expects in ("ends", "disk") and not did_no_harm:
            return "succeeded"
        if not same_as_undisturbed:
            return "other parameters than an undisturbed training"
        # The job was restarted, or the fault came too late or did no harm.
        return misnamed(trial, text) if failures(text) else ""
    if trial.fault == "descriptors" and "Too many open files" in text:
        return ""  # for example, when the report is written: no restart then
    if trial.launch_flags:
        return "failed with %d, although it could be started again" % status
    if trial.expects == "goes on":
        return "failed with %d" % status
    if trial.expects == "disk":
        return "" if "No space left" in text else "does not report that the disk is full"
    return misnamed(trial, text)


# ---- The table.

def summary(results):
    """Returns the rows of the table, one per injected fault."""
    rows = []
    for fault in FAULTS:
        mine = [one for one in results if one["fault"] == fault]
        if not mine:
            continue
        ends = [one["seconds_to_the_end"] for one in mine
                if one["seconds_to_the_end"] is not None]
        again = [one["seconds_to_a_checkpoint"] for one in mine
                 if one["seconds_to_a_checkpoint"] is not None]
        rows.append({
            "fault": fault, "trials": len(mine),
            "came to pass": len(ends),
            "passed": sum(not one["wrong"] for one in mine),
            "failed_as_it_must": sum(not one["wrong"] and one["status"] != 0 for one in mine),
            "median_s": statistics.median(ends) if ends else None,
            "longest_s": max(ends) if ends else None,
            "started_again": len(again),
            "median_to_a_checkpoint_s": statistics.median(again) if again else None,
            "longest_to_a_checkpoint_s": max(again) if again else None,
            "seeds": [one["seed"] for one in mine]})
    return rows


def table(rows):
    lines = ["%-13s %6s %12s %6s %6s %16s %8s %13s" % (
        "fault", "trials", "triggered", "passed", "failed", "median to the end", "longest",
        "started again") + "   median to a checkpoint  longest"]
    for row in rows:
        times = ["-" if row[name] is None else "%.1f s" % row[name] for name in (
            "median_s", "longest_s", "median_to_a_checkpoint_s", "longest_to_a_checkpoint_s")]
        lines.append("%-13s %6d %12d %6d %6d %17s %8s %13d %24s %8s" % (
            row["fault"], row["trials"], row["came to pass"], row["passed"],
            row["failed_as_it_must"], *times[:2], row["started_again"], *times[2:]))
    return "\n".join(lines)
