# The backend of NetworkX: `info` is read whenever networkx is imported, `backend` at a first use.
