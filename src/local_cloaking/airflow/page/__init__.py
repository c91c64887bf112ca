"""The page inside Airflow: every data set and DAG with its verdicts, and the way to each report."""
