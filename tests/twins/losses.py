"""Twins of the losses: functions ``(y, f) -> (V, dV/df, d2V/df2)`` of arrays, as their formulas are written."""

import numpy as np


def square(y, f):
    return (y - f) ** 2, 2 * (f - y), np.full(f.shape, 2.0)


def huber_hinge(h):
    """The Huber hinge of half-width ``h``."""

    def loss(y, f):
        u = y * f
        band, beyond = np.abs(1 - u) <= h, u < 1 - h
        value = np.where(beyond, 1 - u, np.where(band, (1 + h - u) ** 2 / (4 * h), 0.0))
        return value, np.where(beyond, -y, np.where(band, -y * (1 + h - u) / (2 * h), 0.0)), band / (2 * h)

    return loss


def logistic(y, f):
    u = y * f
    p = 0.5 * (1 - np.tanh(u / 2))
    return np.logaddexp(0, -u), -y * p, p * (1 - p)


def squared_hinge(y, f):
    slack = np.maximum(1 - y * f, 0)
    return slack**2, -2 * y * slack, 2.0 * (slack > 0)


def huber_insensitive(epsilon, h):
    """The Huberised epsilon-insensitive loss, for ``epsilon >= h``."""

    def loss(y, f):
        r, size = y - f, np.abs(y - f)
        beyond = size - epsilon > h
        band = ~beyond & (size - epsilon >= -h)
        value = np.where(beyond, size - epsilon, np.where(band, (size - epsilon + h) ** 2 / (4 * h), 0.0))
        slope = np.where(beyond, 1.0, np.where(band, (size - epsilon + h) / (2 * h), 0.0))
        return value, -np.sign(r) * slope, band / (2 * h)

    return loss


def squared_insensitive(epsilon):
    """The quadratic epsilon-insensitive loss."""

    def loss(y, f):
        r, slack = y - f, np.maximum(np.abs(y - f) - epsilon, 0)
        return slack**2, -2 * np.sign(r) * slack, 2.0 * (slack > 0)

    return loss
