import threading

from kinetoscope.signals.hang_detector import LONGEST_S, HangDetector


def test_the_stack_of_a_step_that_hangs_is_reported_once():
    now, current_step, news = [0.0], [(0, 0)], []
    hang = HangDetector(
        lambda kind, value: news.append((kind, value)),
        lambda: current_step[0],
        lambda: None,
        lambda: round(now[0] * 1e9),
    )

    def stands_here():
        watching = threading.Thread(target=hang.check)
        watching.start()
        watching.join()

    current_step[0] = (7, 0)
    for now[0] in (LONGEST_S, LONGEST_S + 1, LONGEST_S + 50):
        stands_here()
    ((kind, value),) = news
    assert (kind, value["step"], value["seconds"]) == ("hanging", 7, 121)
    assert any(frame.endswith(" stands_here") and "test_hang_detector.py:" in frame for frame in value["stack"])
    current_step[0] = (8, round(now[0] * 1e9))
    stands_here()
    assert len(news) == 1


def test_a_job_of_slow_steps_has_more_time():
    now, news = [0.0], []
    hang = HangDetector(
        lambda kind, value: news.append(kind), lambda: (0, 0), lambda: 60 * 10**9, lambda: round(now[0] * 1e9)
    )
    for now[0] in (599.0, 601.0):
        hang.check()
        assert len(news) == (now[0] > 600)
