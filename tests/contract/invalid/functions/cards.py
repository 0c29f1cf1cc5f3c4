"""Functions that contracts of these tests name, and what is wrong with them."""


async def later(full, ctx):
    return full


def short(full):
    return full
