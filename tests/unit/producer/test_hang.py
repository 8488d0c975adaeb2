import threading

from kinetoscope.hang import LONGEST_S, Hang


def test_where_a_step_stands_that_takes_too_long_is_told_once():
    now, news = [0.0], []
    hang = Hang(lambda kind, value: news.append((kind, value)), lambda: None, clock=lambda: now[0])

    def stands_here():
        watching = threading.Thread(target=hang.look)
        watching.start()
        watching.join()

    hang.step_begins(7)
    for now[0] in (LONGEST_S, LONGEST_S + 1, LONGEST_S + 50):
        stands_here()
    ((kind, value),) = news
    assert (kind, value["step"], value["seconds"]) == ("hanging", 7, 121)
    assert any(frame.endswith(" stands_here") and "test_hang.py:" in frame for frame in value["stack"])
    hang.step_begins(8)
    stands_here()
    assert len(news) == 1


def test_a_job_of_slow_steps_has_more_time():
    now, news = [0.0], []
    hang = Hang(lambda kind, value: news.append(kind), lambda: 60 * 10**9, clock=lambda: now[0])
    hang.step_begins(0)
    for now[0] in (599.0, 601.0):
        hang.look()
        assert len(news) == (now[0] > 600)
