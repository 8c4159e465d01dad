package main

import "slices"

// rules are all that is compared, in the order of the table.
func rules() []rule {
	return slices.Concat(
		ttlRules(), expiryRules(), deadLetterRules(), limitRules(), priorityRules(), consumerRules(),
		argumentRules(), declarationRules(), quorumRules(), confirmRules(), routingRules(), settlingRules(),
		mistakeRules(), frameRules(), accessRules(), policyRules(), definitionRules(), managementRules(), messageRules(), keyRules(),
	)
}
