"""Fields: functions of one point whose arrays are trained."""
