"""Measure avatars of a table that scikit-learn ships: 569 women, 31 columns."""

from sklearn.datasets import load_breast_cancer

from local_cloaking import avatarise_in_space, local_cloaking

originals = load_breast_cancer(as_frame=True).frame
made = avatarise_in_space(originals, k=20, ncp=5, seed=1, categorical=["target"])
result = local_cloaking(originals, made.avatars, projection=made.projection)

print(f"Local Cloaking {result.median:g} of {result.n} individuals, hidden rate {result.hidden_rate:.1f} %")
print("not assessable:", result.reason)
print("warnings:", *result.warnings)
