// KWOK plays virtual nodes. It needs newer k8s.io modules than the rest, so it is a module of its own.
module podwright/lab/kubernetes/kwok

go 1.25.0

tool sigs.k8s.io/kwok/cmd/kwok

require sigs.k8s.io/kwok v0.8.0
