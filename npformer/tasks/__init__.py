"""From texts, series and tables to answers: estimators, tokenizers, reports."""
