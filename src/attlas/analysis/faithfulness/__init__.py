"""Whether weights explain an answer: experiments on one layer."""
