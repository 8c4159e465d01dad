package httpapi

import "github.com/duepost/duepost/internal/auth"

// route is what is done at a path, and who may.
type route struct {
	pattern string // of http.ServeMux
	may     func(*call) error
	// do returns nil for 204, made for 201, a status, rows, or what is to be the JSON of a 200.
	do func(*call) (any, error)
}

// routes are RabbitMQ's.
func routes() []route {
	return []route{
		{"GET /api/overview", anyone, overview},
		{"GET /api/whoami", anyone, whoAmI},
		{"GET /api/cluster-name", anyone, showClusterName},
		{"PUT /api/cluster-name", administrators, putClusterName},
		{"GET /api/extensions", anyone, func(*call) (any, error) { return []any{}, nil }},
		{"GET /api/nodes", monitors, listNodes},
		{"GET /api/nodes/{node}", monitors, showNode},
		{"GET /api/aliveness-test/{vhost}", inVHost, testAliveness},
		{"GET /api/healthchecks/node", monitors, checkNode},
		{"GET /api/health/checks/alarms", monitors, checkNode},
		{"GET /api/health/checks/local-alarms", monitors, checkNode},
		{"GET /api/health/checks/virtual-hosts", monitors, checkNode},
		{"GET /api/health/checks/node-is-quorum-critical", monitors, checkQuorum},
		{"GET /api/health/checks/node-is-mirror-sync-critical", monitors, checkQuorum},
		{"GET /api/health/checks/port-listener/{port}", monitors, checkPort},
		{"GET /api/health/checks/protocol-listener/{protocol}", monitors, checkProtocol},

		{"GET /api/vhosts", anyone, listVHosts},
		{"GET /api/vhosts/{vhost}", seesVHost, showVHost},
		{"PUT /api/vhosts/{vhost}", administrators, putVHost},
		{"DELETE /api/vhosts/{vhost}", administrators, deleteVHost},
		{"GET /api/vhosts/{vhost}/permissions", administrators, listVHostPermissions},
		{"GET /api/vhosts/{vhost}/topic-permissions", administrators, listVHostTopics},
		{"GET /api/vhosts/{vhost}/connections", seesVHost, listConnections},
		{"GET /api/vhosts/{vhost}/channels", seesVHost, listChannels},
		{"GET /api/vhost-limits", administrators, listVHostLimits},
		{"GET /api/vhost-limits/{vhost}", seesVHost, listVHostLimits},
		{"PUT /api/vhost-limits/{vhost}/{name}", administrators, putVHostLimit},
		{"DELETE /api/vhost-limits/{vhost}/{name}", administrators, deleteVHostLimit},

		{"GET /api/users", administrators, listUsers},
		{"GET /api/users/without-permissions", administrators, listUsersWithout},
		{"POST /api/users/bulk-delete", administrators, deleteUsers},
		{"GET /api/users/{user}", administrators, showUser},
		{"PUT /api/users/{user}", administrators, putUser},
		{"DELETE /api/users/{user}", administrators, deleteUser},
		{"GET /api/user-limits", administrators, listUserLimits},
		{"GET /api/user-limits/{user}", oneself, listUserLimits},
		{"PUT /api/user-limits/{user}/{name}", administrators, putUserLimit},
		{"DELETE /api/user-limits/{user}/{name}", administrators, deleteUserLimit},
		{"GET /api/users/{user}/permissions", administrators, listUserPermissions},
		{"GET /api/users/{user}/topic-permissions", administrators, listUserTopics},

		{"GET /api/permissions", administrators, listPermissions},
		{"GET /api/permissions/{vhost}/{user}", administrators, showPermission},
		{"PUT /api/permissions/{vhost}/{user}", administrators, putPermission},
		{"DELETE /api/permissions/{vhost}/{user}", administrators, deletePermission},
		{"GET /api/topic-permissions", administrators, listTopics},
		{"GET /api/topic-permissions/{vhost}/{user}", administrators, showTopics},
		{"PUT /api/topic-permissions/{vhost}/{user}", administrators, putTopic},
		{"DELETE /api/topic-permissions/{vhost}/{user}", administrators, deleteTopics},
		{"DELETE /api/topic-permissions/{vhost}/{user}/{exchange}", administrators, deleteTopic},

		{"GET /api/policies", anyone, listPolicies},
		{"GET /api/policies/{vhost}", seesVHost, listPolicies},
		{"GET /api/policies/{vhost}/{name}", seesVHost, showPolicy},
		{"PUT /api/policies/{vhost}/{name}", policymakers, putPolicy},
		{"DELETE /api/policies/{vhost}/{name}", policymakers, deletePolicy},
		{"GET /api/operator-policies", anyone, listOperatorPolicies},
		{"GET /api/operator-policies/{vhost}", seesVHost, listOperatorPolicies},
		{"GET /api/operator-policies/{vhost}/{name}", seesVHost, showOperatorPolicy},
		{"PUT /api/operator-policies/{vhost}/{name}", administrators, putOperatorPolicy},
		{"DELETE /api/operator-policies/{vhost}/{name}", administrators, deleteOperatorPolicy},
		{"GET /api/parameters", policymakers, listParameters},
		{"GET /api/parameters/{component}", policymakers, listParameters},
		{"GET /api/parameters/{component}/{vhost}", policymakers, listParameters},
		{"GET /api/global-parameters", policymakers, listGlobalParameters},
		{"GET /api/global-parameters/{name}", policymakers, showGlobalParameter},
		{"PUT /api/global-parameters/{name}", administrators, putGlobalParameter},
		{"DELETE /api/global-parameters/{name}", administrators, deleteGlobalParameter},

		{"GET /api/definitions", administrators, exportDefinitions},
		{"POST /api/definitions", administrators, importDefinitions},
		{"GET /api/definitions/{vhost}", administrators, exportVHostDefinitions},
		{"POST /api/definitions/{vhost}", administrators, importVHostDefinitions},

		{"GET /api/exchanges", anyone, listExchanges},
		{"GET /api/exchanges/{vhost}", seesVHost, listExchanges},
		{"GET /api/exchanges/{vhost}/{name}", seesVHost, showExchange},
		{"PUT /api/exchanges/{vhost}/{name}", inVHost, putExchange},
		{"DELETE /api/exchanges/{vhost}/{name}", inVHost, deleteExchange},
		{"POST /api/exchanges/{vhost}/{name}/publish", inVHost, publishMessage},
		{"GET /api/exchanges/{vhost}/{name}/bindings/{end}", seesVHost, listExchangeBindings},

		{"GET /api/queues", anyone, listQueues},
		{"GET /api/queues/{vhost}", seesVHost, listQueues},
		{"GET /api/queues/{vhost}/{name}", seesVHost, showQueue},
		{"PUT /api/queues/{vhost}/{name}", inVHost, putQueue},
		{"DELETE /api/queues/{vhost}/{name}", inVHost, deleteQueue},
		{"DELETE /api/queues/{vhost}/{name}/contents", inVHost, purgeQueue},
		{"POST /api/queues/{vhost}/{name}/get", inVHost, getMessages},
		{"GET /api/queues/{vhost}/{name}/bindings", seesVHost, listQueueBindings},

		{"GET /api/bindings", anyone, listBindings},
		{"GET /api/bindings/{vhost}", seesVHost, listBindings},
		{"GET /api/bindings/{vhost}/e/{source}/{kind}/{destination}", seesVHost, listBindingsBetween},
		{"POST /api/bindings/{vhost}/e/{source}/{kind}/{destination}", inVHost, postBinding},
		{"GET /api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}", seesVHost, showBinding},
		{"DELETE /api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}", inVHost, deleteBinding},

		{"GET /api/connections", anyone, listConnections},
		{"GET /api/connections/{name}", anyone, showConnection},
		{"DELETE /api/connections/{name}", anyone, closeConnection},
		{"GET /api/connections/{name}/{what}", anyone, listOfConnection},
		{"DELETE /api/connections/username/{user}", administrators, closeConnectionsOfUser},
		{"GET /api/channels", anyone, listChannels},
		{"GET /api/channels/{name}", anyone, showChannel},
		{"GET /api/consumers", anyone, listConsumers},
		{"GET /api/consumers/{vhost}", seesVHost, listConsumers},
	}
}

// anyone is whoever may use the API at all.
func anyone(*call) error { return nil }

// oneself is the user of the path, or an administrator.
func oneself(c *call) error {
	if c.user.Name == c.name("user") {
		return nil
	}
	return administrators(c)
}

func administrators(c *call) error {
	if c.isAdministrator() {
		return nil
	}
	return notAuthorised("Not administrator user")
}

func monitors(c *call) error {
	if c.isMonitor() {
		return nil
	}
	return notAuthorised("Not monitor user")
}

// inVHost is who has a permission in the virtual host of the path.
func inVHost(c *call) error {
	if _, err := c.vhost(); err != nil {
		return err
	}
	if c.isAdministrator() || c.mayEnter(c.name("vhost")) {
		return nil
	}
	return notAuthorised("User not authorised to access virtual host")
}

// seesVHost is inVHost, and who sees everything.
func seesVHost(c *call) error {
	if c.Broker.VHost(c.name("vhost")) == nil {
		return notFound()
	}
	if c.isMonitor() {
		return nil
	}
	return inVHost(c)
}

// policymakers may set policies where they have a permission.
func policymakers(c *call) error {
	if !c.hasAnyTag(auth.Policymaker, auth.Administrator) {
		return notAuthorised("User not authorised to access object")
	}
	if c.name("vhost") == "" {
		return nil
	}
	return inVHost(c)
}
