"""The image that hosts boot from over the network, as scripts that the server and the hosts themselves run."""
