"""Views of many ranks: functions of `distributed.Ranks` instead of one trace."""
