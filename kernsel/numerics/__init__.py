"""The sums of the library: pure functions on float64 arrays, compiled where loops decide.

One notation throughout (rows are sorted by fold, so that a fold is a slice):

=========  ==========  ====================================================================================
symbol     shape       meaning
=========  ==========  ====================================================================================
``K``      (n, n)      Gram matrix
``Z``      (n, r)      features with ``K = Z Z'`` (exactly or as the low-rank representation)
``U, ev``  (n, r), r   orthonormal columns and eigenvalues with ``K = U diag(ev) U'``
``y``      (n,)        targets; classes are -1 and +1
``s``      (n,)        sample weights; 0 leaves a row out. ``N = sum(s)``
``f``      (n,)        outputs at the rows: ``f = K a = Z w``
``d1, d2`` (n,)        ``s`` times the first two derivatives of the loss in ``f``
``lam``    scalar      regularisation of ``J = (1/N) sum s V(y, f) + lam ||f||^2``
``mu``     scalar      ``2 N lam``: the ridge in the Newton system ``Z' diag(d2) Z + mu I``
``starts`` (t + 1,)    fold ``j`` holds the rows ``starts[j]:starts[j + 1]``
``left``   (t,)        ``N`` without the fold's weights
=========  ==========  ====================================================================================
"""
