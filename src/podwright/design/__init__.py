"""Design: a pod's fabrics, sized, wired and drawn; what they give to a job. Pure: facts in, data and text out."""
