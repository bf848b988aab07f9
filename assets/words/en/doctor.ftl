# The answers of `doctor --explain`: what is around the explanations, which stand in src/tasks/doctor in English.

explain-means = means:
explain-do = do:
explain-as-of = as of:
explain-here = here:
explain-lost = { $sum } = { $factor }: an axis of that length, such as the heads, was lost
explain-uneven = { $sum } = { $factor }, no whole number: the lengths differ
explain-unknown = This message is unknown, and no known message is similar.
explain-unknown-do = run `maskloom doctor`, which checks driver, NVRTC, Python and display
explain-own = A message of Maskloom itself: the text behind the code says what is wrong.
explain-own-do = what the line `help:` below the message says
explain-similar = This message is unknown. The most similar known messages:
