"""The whole kernel on tens of thousands of rows, by tiles that are computed whenever they are needed."""
