"""Tests that the client with the most memory loses its largest connection first."""

from fastevm.rpc.traffic import Holding, TrafficBudget


class Ends:
    """Connections of clients that record the order in which they are closed."""

    def __init__(self, limit: int) -> None:
        self.budget = TrafficBudget(limit)
        self.ended: list[str] = []

    def holding(self, client: str, name: str) -> Holding:
        return self.budget.holding(client, lambda: self.ended.append(name))


def test_the_largest_of_the_client_that_holds_most_ends() -> None:
    ends = Ends(100)
    honest = ends.holding("honest", "honest")
    honest.hold(30)
    for number in range(4):
        ends.holding("greedy", f"greedy {number}").hold(15 + number)
    assert ends.budget.used == 96 and not ends.ended
    ends.holding("third", "third").hold(10)
    assert ends.ended == ["greedy 3"]
    assert honest.size == 30 and ends.budget.used == 88


def test_what_is_too_large_alone_ends_itself() -> None:
    ends = Ends(100)
    ends.holding("a", "small").hold(10)
    ends.holding("b", "large").hold(101)
    assert ends.ended == ["large"] and ends.budget.used == 10


def test_an_answer_larger_than_the_limit_can_be_read() -> None:
    ends = Ends(100)
    reader = ends.holding("a", "reader")
    reader.hold(0, 500)
    ends.holding("b", "other").hold(20)
    assert not ends.ended and ends.budget.used == 70
    reader.hold(0, 30)
    assert ends.budget.used == 50
    reader.close()
    assert ends.budget.used == 20 and reader.end is None


def test_a_client_with_little_has_room_while_others_use_much() -> None:
    budget = TrafficBudget(80)
    batch = budget.holding("greedy")
    assert budget.has_room("greedy")
    batch.hold(45)
    assert not budget.has_room("greedy")
    assert budget.has_room("other")
    other = budget.holding("other")
    other.hold(10)
    assert not budget.has_room("other")
    batch.hold(0)
    assert budget.has_room("greedy") and budget.has_room("other")


def test_what_cannot_end_counts_against_its_client() -> None:
    ends = Ends(100)
    ends.budget.holding("greedy").hold(60)
    ends.holding("greedy", "greedy").hold(5)
    ends.holding("honest", "honest").hold(40)
    assert ends.ended == ["greedy"] and ends.budget.used == 100
