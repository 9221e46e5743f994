// Package compose tests the Dockerfile and docker-compose.yml. It builds the image, starts
// deployments with Docker Compose, locks through them, and stops and restarts their parts. It needs
// a Docker engine, the build tag integration, and if no registry is reachable, the script stand-ins
// in this folder.
//
// Every deployment has a project name of its own. It is removed, with its volumes, when its test
// ends. All images stay, except the proxy's own.
package compose
