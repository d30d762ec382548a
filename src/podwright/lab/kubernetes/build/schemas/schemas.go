//go:build tools

// Package schemas holds on to modules of which only files are taken: OpenShift's own definitions, for API servers that
// have none of its programs.
package schemas

import _ "github.com/openshift/api/security/v1"
