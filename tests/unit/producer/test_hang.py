import threading

from kinetoscope.hang import LONGEST_S, Hang


def test_where_a_step_stands_that_takes_too_long_is_told_once():
    now, began, news = [0.0], [(0, 0)], []
    hang = Hang(
        lambda kind, value: news.append((kind, value)), lambda: began[0], lambda: None, lambda: round(now[0] * 1e9)
    )

    def stands_here():
        watching = threading.Thread(target=hang.look)
        watching.start()
        watching.join()

    began[0] = (7, 0)
    for now[0] in (LONGEST_S, LONGEST_S + 1, LONGEST_S + 50):
        stands_here()
    ((kind, value),) = news
    assert (kind, value["step"], value["seconds"]) == ("hanging", 7, 121)
    assert any(frame.endswith(" stands_here") and "test_hang.py:" in frame for frame in value["stack"])
    began[0] = (8, round(now[0] * 1e9))
    stands_here()
    assert len(news) == 1


def test_a_job_of_slow_steps_has_more_time():
    now, news = [0.0], []
    hang = Hang(lambda kind, value: news.append(kind), lambda: (0, 0), lambda: 60 * 10**9, lambda: round(now[0] * 1e9))
    for now[0] in (599.0, 601.0):
        hang.look()
        assert len(news) == (now[0] > 600)
