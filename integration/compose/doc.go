// Package compose tests the Dockerfile and docker-compose.yml by running them: the image is built,
// deployments are started by Docker Compose, locked through, taken apart and put together again. It
// needs a Docker engine, the build tag integration, and where no registry answers, the script
// stand-ins beside this file.
//
// Every deployment has a project name of its own and is removed, with its volumes, when its test
// ends. Images stay, but for the proxy's own.
package compose
