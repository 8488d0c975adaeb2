"""What the engine holds its results in: computed once, least recently used first out, failures kept unless transient."""

from concurrent.futures import Future, ThreadPoolExecutor

from kinetoscope_tb.engine.future_cache import FutureCache, Pending


def done(value=None, error=None):
    item = Pending()
    if error is None:
        item.future.set_result(value)
    else:
        item.future.set_exception(error)
    return item


def keys(cache, *known):
    return [key for key in known if cache.find(key) is not None]


def test_however_many_ask_it_is_started_once():
    started, cache = [], FutureCache()

    def start():
        started.append(1)
        return Pending()

    with ThreadPoolExecutor(8) as pool:
        items = list(pool.map(lambda _: cache.get("a", start), range(8)))
    assert (len(started), len({id(item) for item in items})) == (1, 1)


def test_the_least_recently_used_makes_room():
    cache = FutureCache(most=2)
    for key in "abac":
        cache.get(key, done)
    assert keys(cache, *"abc") == ["a", "c"]


def test_what_is_no_longer_current_is_started_again():
    cache = FutureCache(most=1)
    first = cache.get("a", lambda: done(1))
    second = cache.get("a", lambda: done(2), lambda item: item.future.result() == 2)
    assert (first.future.result(), second.future.result(), len(cache)) == (1, 2, 1)


def test_beyond_the_capacity_what_is_done_goes_and_what_grows_stays():
    cache = FutureCache(capacity_bytes=lambda: 10)
    running = cache.get("running", Pending)
    old, new = cache.get("old", done), cache.get("new", done)
    for item, size in ((running, 4), (old, 4), (new, 4)):
        item.held_bytes += size
        cache.make_room(item)
    assert keys(cache, "running", "old", "new") == ["running", "new"]
    new.held_bytes += 100
    cache.make_room(new)
    assert keys(cache, "running", "new") == ["running", "new"]


def test_a_failure_stays_and_a_transient_one_is_started_again():
    cache = FutureCache(is_transient=lambda error: isinstance(error, TimeoutError))
    assert cache.get("a", lambda: done(error=ValueError())) is cache.get("a", done)
    assert cache.get("b", lambda: done(error=TimeoutError())) is not cache.get("b", done)
    later = cache.get("c", Pending)
    later.future.set_exception(TimeoutError())
    assert cache.find("c") is None


def test_only_the_item_itself_is_dropped():
    cache = FutureCache()
    first = cache.get("a", done)
    cache.get("a", lambda: Pending(Future()), lambda item: item is not first)
    cache.drop("a", first)
    assert cache.find("a") is not None
    cache.drop("a", cache.find("a"))
    assert len(cache) == 0
