"""Why a job died, from how each of its ranks ended: pure functions of `RankStatus`.

exceptions  an exception → its class of cause; one of a collective tells of another rank's end
deaths      how a rank ended → `Death`
verdict     who was first, or why nobody can tell
titles      how ranks ended, as text
sentences   the verdict as one sentence, and what to do
evidence    what it rests on: a row per rank, and sentences
"""
