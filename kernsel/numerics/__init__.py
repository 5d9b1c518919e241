"""The sums of the library: pure functions on float64 arrays, compiled where loops decide.

One notation throughout (rows are sorted by fold, so that a fold is a slice):

==========  ==========  ===================================================================================
symbol      shape       meaning
==========  ==========  ===================================================================================
``n, d``                rows (points), and their features as given
``r``                   rank: columns of Z or U
``k, q``                outputs: of a learner; solved side by side
``L``                   number of ``lams``
``t``                   folds
``K``       (n, n)      Gram matrix
``Z``       (n, r)      features with ``K = Z Z'`` (exactly or as the low-rank representation)
``G``       (r, r)      their products ``Z' Z``; an argument that is either K or Z has this name, too
``U, ev``   (n, r), r   orthonormal columns and eigenvalues with ``K = U diag(ev) U'``
``y, Y``    (n,) (k,n)  targets; classes are -1 and +1
``s, S``    (n,)        sample weights, ``S = diag(s)``; 0 leaves a row out
``N``       scalar      ``sum(s)``
``root``    (n,)        ``sqrt(s)``, or the root of another diagonal matrix that its function names
``a``       (n,)        coefficients of the kernel functions, ``f = K a + b``
``w``       (r,)        weights of the features, ``f = Z w + b``
``b``       scalar      unpenalised bias; ``bias`` says whether there is one
``f``       (n,)        outputs at the rows
``V``                   the loss ``V(y, f)``, with its parameters
``d1, d2``  (n,)        ``s`` times the first two derivatives of the loss in ``f``
``D``       (n, n)      ``diag(d2)``, the curvature; rows with ``d2 > 0`` are curved
``lam``     scalar      regularisation of ``J = (1/N) sum s V(y, f) + lam ||f||^2``
``ridge``   scalar      ``N lam``: of the square loss, whose factor 2 cancels, ``K + ridge I``
``mu``      scalar      ``2 N lam``: of the Newton system of any other loss, ``Z' D Z + mu I``
``A``       (n, n)      ``(K + ridge I)^-1``, less a rank-one matrix with a bias
``M``       (m, m)      ``(D^1/2 K D^1/2 + mu I)^-1`` of the m curved rows, bordered with a bias
``R``       (n, n)      a Cholesky factor, lower triangular
``starts``  (t + 1,)    fold ``j`` holds the rows ``starts[j]:starts[j + 1]``
``left``    (t,)        ``N`` without the fold's weights
``X_S``                 the rows of X, or entries of a vector, in fold S; ``X_SS`` also its columns
``rho``     (t,)        ratio of the influence series of a fold
``status``  (t,)        0, or a key of ``smooth.convergence.REASONS``
``weights`` (m,)        of kernels in a sum (``mkl``); ``penalty`` is that of first-level kernel learning
==========  ==========  ===================================================================================

What else a letter stands for is said where it is used: C for columns of K at landmarks (``lowrank``) or for rows of
``D^1/2 Z`` in a fold (``smooth.heldout_features``), W for the landmarks' block, T for what makes features of columns.
"""
