// Package compose tests the Dockerfile and docker-compose.yml. It builds the image, starts
// deployments with Docker Compose, locks through them, and stops and restarts their parts. It needs
// a Docker engine and the build tag integration. If no registry is reachable, it also needs the
// script stand-ins in this folder.
//
// Every deployment has its own project name. When its test ends, the test removes the deployment
// with its volumes. All images stay, except the proxy's image.
package compose
