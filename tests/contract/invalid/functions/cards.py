"""Functions that contracts of these tests name, and what is wrong with them."""


async def later(full: object, ctx: object) -> object:
    return full


def short(full: object) -> object:
    return full
