"""Arithmetic on samples, as in support/statistics.h."""

import math
import statistics

STUDENT_T975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def student_t975(degrees):
    """The 0.975 quantile of Student's t with `degrees` >= 1 degrees of freedom.

    Beyond the table: the expansion in 1 / degrees (Abramowitz and Stegun,
    "Handbook of Mathematical Functions", 26.7.5).
    """
    if degrees <= len(STUDENT_T975):
        return STUDENT_T975[degrees - 1]
    x, n = 1.959964, degrees
    return (x + (x**3 + x) / (4 * n) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * n**2)
            + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * n**3))


def summarise(samples):
    """Median, minimum, maximum, mean and the mean's 95 % confidence interval, which is
    infinite for a single sample."""
    mean = statistics.fmean(samples)
    half = math.inf
    if len(samples) > 1:
        half = student_t975(len(samples) - 1) * statistics.stdev(samples) / math.sqrt(len(samples))
    return {"samples": len(samples), "median": statistics.median(samples), "min": min(samples),
            "max": max(samples), "mean": mean, "low": mean - half, "high": mean + half}


def format_summary(summary):
    return "%.3f [%.3f, %.3f]  median %.3f  min %.3f  max %.3f  (%d rounds)" % tuple(
        summary[key] for key in ("mean", "low", "high", "median", "min", "max", "samples"))


def common_distance(distances):
    """The distance of the cores ("near", "far", "unknown") if all measurements agree; else
    "moved"."""
    distances = set(distances)
    return distances.pop() if len(distances) == 1 else "moved"
