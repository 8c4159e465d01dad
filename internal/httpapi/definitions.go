package httpapi

import "github.com/duepost/duepost/internal/definitions"

func exportDefinitions(c *call) (any, error) { return definitions.Export(c.Site) }

// importDefinitions brings in a file. What is there stays as it is, and how it differs is told.
func importDefinitions(c *call) (any, error) {
	file, err := c.body()
	if err != nil {
		return nil, err
	}
	return told(definitions.Import(c.importSite(), file))
}

// importSite is where to import to, on behalf of the user.
func (c *call) importSite() definitions.Site {
	s := c.Site
	s.User = c.user.Name
	return s
}

func exportVHostDefinitions(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, notFound()
	}
	return definitions.ExportVHost(v)
}

func importVHostDefinitions(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, notFound()
	}
	file, err := c.body()
	if err != nil {
		return nil, err
	}
	return told(definitions.ImportVHost(c.importSite(), v, file))
}

// told is 204, or 200 with what an operator should know about what was imported.
func told(notes []error, err error) (any, error) {
	if err != nil || len(notes) == 0 {
		return nil, err
	}
	texts := make([]string, len(notes))
	for i, note := range notes {
		texts[i] = note.Error()
	}
	return object{"notes": texts}, nil
}
