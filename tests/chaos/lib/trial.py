"""What a trial is: what its seed decides, and whether the job ended as it must."""

import random
import re
import statistics

LONGEST_S = 100  # no start takes longer: Open MPI notices a cut link after half a minute

# name: (what the job must do, whether it runs on two hosts). "ends": fail and name the rank;
# "goes on": end as if nothing had been; "either": one of the two.
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
NOT_RESTARTED = ("bad input", "disk full", "link cut")  # nothing would be better then
OF_THE_WRITER = ("disk full", "descriptors")  # rank 0, which saves
FROM_WITHIN = ("exit", "exception", "uncaught")  # what the rank itself does

# What the messages must have, beside the rank, of a rank that could not tell more.
CAUSES = {"kill": "by signal 9", "host killed": "by signal 9", "abort": "by signal 6",
          "crash": "by signal 11", "exit": "with exit code 3", "exception": "thrown by chaos",
          "uncaught": "by signal 6"}

# Where a rank is held, or struck soon after, and how often it is there; in
# tests/chaos/rank_in_trial.cc. Who commits and saves is rank 0, whatever rank is struck.
POINTS = {
    "start": {"loaded": 1, "MPI_Init": 1, "MPI_Init_over": 1, "init_over": 1},
    "steps": {"LOAD_BATCH": 250, "FORWARD": 250, "BACKWARD": 250},
    "commit": {"COMMIT": 200, "connect": 100, "send": 200},
    "checkpoint": {"write": 12, "fsync": 8, "rename": 8},
    "evaluation": {"EVALUATE": 3},
    # Of the job that has been started again, after a rank was killed.
    "restart": {"loaded": 1, "MPI_Init": 1, "MPI_Init_over": 1, "init_over": 1},
    "shutdown": {"shutdown": 1, "MPI_Finalize": 1, "MPI_Finalize_over": 1, "ended": 1},
}
OF_RANK_0 = ("commit", "checkpoint")
COMMITS_WITHOUT_STORE = 12  # those for the file alone
BY_USER = "chaos: started again"
AGAIN = re.compile(r"(?m)^(?:.* hvdliterun warning\] starting again \(1 of .*|%s)$" % BY_USER)
SOON_S = {"start": 0.3, "restart": 0.3}  # else:
SOON_IN_STEPS_S = 0.03


class Trial:
    """What the seed decides. `moment` and `ranks`, if they are given, take the place of what it
    has drawn."""

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
        # Who is killed before "restart", and in which step.
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
        self.part = drawn["part"]  # of what is left open
        # While the rank stands at the point, or so long after it.
        self.after_s = 0.0 if drawn["held"] < 0.5 else (
            self.part * SOON_S.get(self.moment, SOON_IN_STEPS_S))

    @property
    def ranks_of_host(self):
        return self.ranks // 2 if self.on_hosts else self.ranks

    @property
    def host(self):
        return self.rank // self.ranks_of_host

    def struck_ranks(self):
        """Those that the fault takes, and so may be named."""
        if self.fault == "link cut":
            return list(range(self.ranks))  # for each side the other is gone
        if self.fault == "host killed":
            return [rank for rank in range(self.ranks)
                    if rank // self.ranks_of_host == self.host]
        return [self.rank]

    def watch(self):
        """The point for rank_in_trial.cc, of the start with the fault."""
        again = self.moment == "restart" and bool(self.launch_flags)
        return "%s %d %d %d" % (self.point, self.count,
                                0 if self.moment in OF_RANK_0 else self.rank, again)

    def first_kill(self):
        """The same of the first start of a trial at "restart", where a rank kills itself."""
        return ("BACKWARD %d %d 0" % (self.first_step, self.first_rank)
                if self.moment == "restart" else "")

    def __str__(self):
        return "seed %d: %s, rank %d of %d%s, %s%s: %s %d%s%s" % (
            self.seed, self.fault, self.rank, self.ranks, " on 2 hosts" if self.on_hosts else "",
            self.moment, " after rank %d was killed in step %d" % (
                self.first_rank, self.first_step) if self.moment == "restart" else "",
            self.point, self.count, " + %.3f s" % self.after_s if self.after_s else "",
            "".join(" " + flag for flag in self.launch_flags))


# ---- Whether it was right.

def failures(text):
    """hvdliterun's messages about ranks that failed."""
    return [line for line in text.splitlines()
            if line.startswith("hvdliterun: ") and re.search(r"\brank \d+ .*failed", line)]


def names_rank(text, rank):
    """Whether hvdliterun's first message about a failure names this rank."""
    messages = failures(text)
    return bool(messages) and re.search(r"\brank %d\b" % rank, messages[0]) is not None


def tells_at_start(trial, text):
    """Whether ranks that were there in time have said that others were not: who is missing is
    not known before MPI has begun."""
    return (trial.moment in ("start", "restart")
            and "has been in hvdlite::init() for" in text)


def parts(trial, text):
    """What was said until the first kill of a trial at "restart" was over, and from there on; of
    other trials nothing, and all."""
    if trial.moment != "restart":
        return "", text
    before, *after = AGAIN.split(text, maxsplit=1)
    return before, "".join(after)


def misnamed(trial, text):
    """What is wrong with the message about the fault; "" if nothing is."""
    if tells_at_start(trial, text):
        return ""
    if trial.fault == "link cut":
        first = "".join(failures(text)[:1])
        silent = re.search(r"\((\S+)\) has given no sign of life to rank \d+ \((\S+)\)", first)
        if silent and silent[1] == silent[2] and "another host" not in first:
            return "the message is of two ranks of one host"
        # Once the ranks have nothing more to say to each other.
        if trial.moment == "shutdown" and "on node host%d\n" % trial.host in text:
            return ""
    if trial.fault in ("bad input", "exception") and "on rank %d: " % trial.rank in text:
        return ""  # which all ranks know, and so all of them have ended
    if not any(names_rank(text, rank) for rank in trial.struck_ranks()):
        return "the message does not name rank %d" % trial.rank
    cause = CAUSES.get(trial.fault, "")
    # Who was killed before it could tell is named by the others, who know no signal.
    if cause not in text and "; then rank " not in failures(text)[0]:
        return "the message does not tell '%s'" % cause
    return ""


def verdict(trial, status, text, same_as_undisturbed):
    """What is wrong with how a job ended; "" if nothing is. `same_as_undisturbed`: its result,
    or None where it has none."""
    if status is None:
        return "did not end within %d s" % LONGEST_S
    before, text = parts(trial, text)
    if trial.moment == "restart" and before and failures(before) and not names_rank(
            before, trial.first_rank):
        return "the first message does not name rank %d" % trial.first_rank
    if status == 0:
        # A trainer goes on without a checkpoint whose making has thrown.
        did_no_harm = same_as_undisturbed or (
            trial.fault == "exception" and "no checkpoint after" in text)
        if trial.expects in ("ends", "disk") and not did_no_harm:
            return "ended well"
        if not same_as_undisturbed:
            return "other parameters than an undisturbed training"
        # It was started again, or the fault came too late or did no harm.
        return misnamed(trial, text) if failures(text) else ""
    if trial.fault == "descriptors" and "Too many open files" in text:
        return ""  # such as for the report, for which it is not started again
    if trial.launch_flags:
        return "failed with %d, though it could be started again" % status
    if trial.expects == "goes on":
        return "failed with %d" % status
    if trial.expects == "disk":
        return "" if "No space left" in text else "does not tell that the disk is full"
    return misnamed(trial, text)


# ---- The table.

def summary(results):
    """Rows of the table, one per fault that was tried."""
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
        "fault", "trials", "came to pass", "passed", "failed", "median to the end", "longest",
        "started again") + "   median to a checkpoint  longest"]
    for row in rows:
        times = ["-" if row[name] is None else "%.1f s" % row[name] for name in (
            "median_s", "longest_s", "median_to_a_checkpoint_s", "longest_to_a_checkpoint_s")]
        lines.append("%-13s %6d %12d %6d %6d %17s %8s %13d %24s %8s" % (
            row["fault"], row["trials"], row["came to pass"], row["passed"],
            row["failed_as_it_must"], *times[:2], row["started_again"], *times[2:]))
    return "\n".join(lines)
