"""The formula, as it stands, beside the package: the same counts."""

import numpy as np

from local_cloaking import closer_avatar_counts

random = np.random.default_rng(1)
originals = random.normal(size=(300, 5))  # coordinates in the first ncp components
avatars = originals + random.normal(scale=0.5, size=(300, 5))  # avatar i is original i's own

distances = np.linalg.norm(originals[:, None, :] - avatars[None, :, :], axis=2)
own = np.diagonal(distances)
closer = distances <= own[:, None]
np.fill_diagonal(closer, False)  # the own avatar never counts
counts = closer.sum(axis=1)

assert (counts == closer_avatar_counts(originals, avatars)).all()
print("Local Cloaking", np.median(counts))
