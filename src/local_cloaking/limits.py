"""The bounds of the safeguards, in one place.

Each bound decides between *measured*, *warned*, *not assessable* and *refused*. What each guards against, and
how often it errs, stands in ``docs/safeguards.md``; the rates of the rule for shuffled avatars come from
``scripts/shuffle_rates.py``.
"""

from __future__ import annotations

# Shuffled avatars (pairing.py) ---------------------------------------------------------------------------
#: z: how far, in standard deviations of a random pairing, originals must go with their own avatars.
MIN_ASSOCIATION = 4.0
#: F: share of originals whose avatar stands beyond half of all others; half of a shuffled share does.
MAX_FAR_SHARE = 0.15
WARN_FAR_SHARE = 0.05
#: Median strict count as a share of the n - 1 other avatars; a random pairing gives one half.
MAX_MEDIAN_SHARE = 0.25

#: From this number of individuals on, a sample is counted first: of shuffled avatars, every ball holds half the
#: table, and a million of them would take an hour. It can only stop the work, never spare it for a pass.
EARLY_STOP_ROWS = 20_000
#: The second sample is counted where the first leaves it open.
EARLY_STOP_SAMPLES = (500, 8_000)
#: How many standard deviations the sample's F must lie beyond MAX_FAR_SHARE to stop the work.
EARLY_STOP_MARGIN = 6.0

# What the avatars' cells look like (safeguards.py) --------------------------------------------------------
#: More than this share of avatars equal to their own original in all columns: not assessable.
MAX_COPY_SHARE = 0.90
#: Two numbers nearer than this share of the column's standard deviation are copies of each other.
COPY_TOLERANCE = 1e-6
#: Numbers that one of the tables stored in float32 are the same up to this share of themselves, as long as that is
#: no more than the other share of the column's spread.
SINGLE_PRECISION = 2.0**-23
MOST_SINGLE_PRECISION = 1e-3
#: A column is carried over where more than this share of avatars have their own original's value in it. Whom the
#: carried-over columns single out is linked by them, however far the avatar stands.
CARRIED_OVER_SHARE = 0.95
#: Median distance to the nearest avatar, as a share of that to the nearest other original: below it, the avatars
#: are copies with noise, whichever original they are paired with: not assessable. Honest avatars of
#: k = 2 and more: 0.39 and more (``scripts/safeguard_figures.py``).
NEAR_COPY_RATIO = 0.10
#: Originals looked at for that median: it can only stop what would pass, so a sample does.
NEAR_COPY_SAMPLE = 1_000
#: Share of avatars equal to some original beyond what the originals' own duplicates explain: warned.
WARN_REAL_ROW_EXCESS = 0.05
#: A column with this much more missing in the avatars than in the originals (a share): not assessable.
MAX_MISSING_EXCESS = 0.05
#: Spread of a number, or number of distinct rows, below this share of the originals': collapsed, warned.
COLLAPSED_SHARE = 0.10
#: A category column collapsed to one level warns where the other levels held more than this share.
COLLAPSED_MINORITY = 0.20

# Column roles (tables/columns.py) --------------------------------------------------------------------------
#: A column of categories with more than this share of different values names individuals: refused.
IDENTIFIER_SHARE = 0.9
#: Above this share it may name them: warned.
NEAR_IDENTIFIER_SHARE = 0.5
#: A column of more categories than this is refused whatever their share: it names individuals or is no category,
#: and the projection, whose work grows with the cube of the categories, would not end.
MAX_LEVELS = 10_000
#: With fewer values than this, all of them may differ by chance.
IDENTIFIER_MIN_ROWS = 10
#: From this number of values on, a column of different whole numbers is worth a question: warned.
WHOLE_IDENTIFIER_MIN_ROWS = 100
#: Text of which more than this share are numbers was meant as numbers: refused unless declared.
NUMBERS_AS_TEXT_SHARE = 0.5
#: Text that is all numbers passes as categories up to this many of them.
NUMBERS_AS_TEXT_MAX_LEVELS = 20

# The projected space (projection.py) -----------------------------------------------------------------------
#: Components with less than this share of the largest eigenvalue are rounding noise: they do not count.
RANK_TOLERANCE = 1e-10
#: Two eigenvalues closer than this share of the largest: a cut between them is arbitrary, refused.
EQUAL_EIGENVALUES = 1e-8
#: Two fits on the same table agree at least to this share; else a projection is another table's: refused.
SAME_FIT = 1e-6
#: Coordinates handed over are those of a row where they lie no further off than this share of the originals'
#: spread: what is written with five digits.
SAME_COORDINATES = 1e-4

# What the record shows beside the figure ----------------------------------------------------------------------
#: Local Cloaking is shown for each number of components up to this one.
LADDER_COMPONENTS = 10
#: From this number of individuals on, it is shown there for a sample of originals, each among all avatars: it is
#: no part of the verdict.
LADDER_SAMPLED_ROWS = 5_000
LADDER_SAMPLE = 2_000
#: Groups of fewer individuals are merged or withheld.
MIN_GROUP_SIZE = 10
#: The list of the weakly protected holds this share of the individuals, those of the lowest counts (with all who
#: have the last one's), and everybody with a count of 0.
REMEDIATION_SHARE = 0.05

# Choosing k (trying.py) ----------------------------------------------------------------------------------------
#: The smallest k tried where the user names none: with k = 1, an avatar is another person's row.
SMALLEST_ADVISED_K = 2
#: The largest k tried where the user names none, as a share of the individuals: up to here, the rule for shuffled
#: avatars refuses no honest ones (``docs/safeguards.md``).
LARGEST_ADVISED_SHARE = 0.3
#: ... and in numbers: each avatar draws on k neighbours, so that memory and time grow with k.
LARGEST_ADVISED_K = 500
