package attachment

import "errors"

// Keys of the Secret with a node's CHAP credentials, as in Kubernetes' type kubernetes.io/iscsi-chap.
const (
	keyUser      = "node.session.auth.username"
	keySecret    = "node.session.auth.password"
	keyUserIn    = "node.session.auth.username_in"
	keySecretIn  = "node.session.auth.password_in"
	minimumBytes = 12
)

// Credentials are a name and a secret.
type Credentials struct{ User, Secret string }

// CHAP has the credentials by which a node authenticates, and those by which the target authenticates to the node. They come with
// a call's secrets, for the controller and for the node, and are neither logged nor put into a publish context.
type CHAP struct {
	Own    *Credentials
	Mutual *Credentials
}

// ReadCHAP reads a call's secrets; none: no authentication.
func ReadCHAP(secrets map[string]string) (CHAP, error) {
	var chap CHAP
	for _, part := range []struct {
		user, secret string
		into         **Credentials
	}{{keyUser, keySecret, &chap.Own}, {keyUserIn, keySecretIn, &chap.Mutual}} {
		found := Credentials{secrets[part.user], secrets[part.secret]}
		switch {
		case found == Credentials{}:
			continue
		case found.User == "":
			return chap, errors.New("the secret has no key " + part.user)
		case len(found.Secret) < minimumBytes:
			return chap, errors.New("the secret's " + part.secret + " has less than 12 bytes")
		}
		*part.into = &found
	}
	if chap.Mutual != nil && chap.Own == nil {
		return chap, errors.New("the secret has mutual CHAP without the node's own: add " + keyUser + " and " + keySecret)
	}
	return chap, nil
}
