"""From texts, series and tables to answers: estimators and reports."""
