package server

import (
	"container/list"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"sluice.dev/sluice/controlplane/internal/attempts"
)

// Bounds of connections whose client has not shown a certificate yet.
const (
	// handshakeTimeout bounds the TLS handshake with the HTTP/2 preface.
	handshakeTimeout = 5 * time.Second
	// maxStrangers bounds the connections in their handshake at a time.
	maxStrangers = 512
	// strangersOfOne bounds those of one network; strangersKnown are reserved for known networks.
	strangersOfOne = maxStrangers - maxStrangers/4
	strangersKnown = maxStrangers / 4
	// maxKnown bounds the remembered networks of clients that have shown a certificate.
	maxKnown = 4096
)

// strangers are the connections in their handshake. A new connection is always admitted. If there is no room, the oldest
// connection of a network is closed: of the new connection's own network if that has used its share, otherwise of the network
// with the most connections. Known networks have reserved room (controlplane/decisions/certificates-and-connections.md).
type strangers struct {
	log     *slog.Logger
	evicted prometheus.Counter

	mutex    sync.Mutex
	networks map[netip.Prefix]*network
	count    int
	unknown  int
	arrivals uint64
	known    recent
	logged   time.Time
}

// network is an IPv4 address or 64 bits of an IPv6 address, with its connections in their handshake, oldest first.
type network struct {
	known   bool
	waiting list.List
}

// stranger is a connection, during its handshake and after it.
type stranger struct {
	net.Conn
	all     *strangers
	from    netip.Prefix
	known   bool
	arrived uint64
	// at is its element in the network's list; nil once the handshake or the connection has ended.
	at *list.Element
}

func newStrangers(log *slog.Logger, registry prometheus.Registerer) *strangers {
	s := &strangers{log: log, networks: map[netip.Prefix]*network{}, known: newRecent(maxKnown),
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_controlplane_connections_evicted_total",
			Help: "Connections closed before their TLS handshake was over, to make room for another one.",
		})}
	registry.MustRegister(s.evicted)
	return s
}

// admit makes room for a connection.
func (s *strangers) admit(conn net.Conn) *stranger {
	connection := &stranger{Conn: conn, all: s, from: attempts.NetworkOf(conn.RemoteAddr())}
	s.mutex.Lock()
	connection.known = s.known.has(connection.from)
	out := s.victim(connection)
	if out != nil {
		s.remove(out)
		s.evicted.Inc()
	}
	s.add(connection)
	if out != nil && time.Since(s.logged) > time.Second {
		s.logged = time.Now()
		s.log.Warn("too many connections are in their TLS handshake: the oldest are closed", "from", out.from.String())
	}
	s.mutex.Unlock()
	if out != nil {
		if tcp, ok := out.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // neither side keeps state for it
		}
		_ = out.Conn.Close()
	}
	return connection
}

// victim returns the connection that is closed for a new one; nil: there is room.
func (s *strangers) victim(connection *stranger) *stranger {
	if own := s.networks[connection.from]; own != nil && own.waiting.Len() >= strangersOfOne {
		return oldest(own)
	}
	if s.count < maxStrangers && (connection.known || s.unknown < maxStrangers-strangersKnown) {
		return nil
	}
	if found := s.oldestOfMost(connection.from, false); found != nil || !connection.known {
		return found
	}
	return s.oldestOfMost(connection.from, true)
}

// oldestOfMost returns the oldest connection of the network that has the most, including the new connection.
func (s *strangers) oldestOfMost(newcomer netip.Prefix, known bool) *stranger {
	var found *stranger
	most := 0
	for from, its := range s.networks {
		if its.known != known {
			continue
		}
		n := its.waiting.Len()
		if from == newcomer {
			n++
		}
		if first := oldest(its); found == nil || n > most || n == most && first.arrived < found.arrived {
			found, most = first, n
		}
	}
	return found
}

func oldest(n *network) *stranger { return n.waiting.Front().Value.(*stranger) }

func (s *strangers) add(connection *stranger) {
	its := s.networks[connection.from]
	if its == nil {
		its = &network{}
		s.networks[connection.from] = its
	}
	its.known = its.known || connection.known
	s.arrivals++
	connection.arrived = s.arrivals
	connection.at = its.waiting.PushBack(connection)
	s.count++
	if !connection.known {
		s.unknown++
	}
}

func (s *strangers) remove(connection *stranger) {
	if connection.at == nil {
		return
	}
	its := s.networks[connection.from]
	its.waiting.Remove(connection.at)
	connection.at = nil
	if its.waiting.Len() == 0 {
		delete(s.networks, connection.from)
	}
	s.count--
	if !connection.known {
		s.unknown--
	}
}

// proven records that the client has shown a certificate.
func (s *strangers) proven(connection *stranger) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.remove(connection)
	s.known.add(connection.from)
}

// Close implements net.Conn.
func (s *stranger) Close() error {
	s.all.mutex.Lock()
	s.all.remove(s)
	s.all.mutex.Unlock()
	return s.Conn.Close()
}

// guardedListener admits the connections that another listener accepts.
type guardedListener struct {
	net.Listener
	all *strangers
}

// Accept implements net.Listener.
func (l guardedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.all.admit(conn), nil
}

// guardedTLS detects that a client has shown its certificate.
type guardedTLS struct {
	credentials.TransportCredentials
	all *strangers
}

// ServerHandshake implements credentials.TransportCredentials.
func (g guardedTLS) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := g.TransportCredentials.ServerHandshake(raw)
	if s, ok := raw.(*stranger); ok && err == nil {
		g.all.proven(s)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (g guardedTLS) Clone() credentials.TransportCredentials {
	return guardedTLS{g.TransportCredentials.Clone(), g.all}
}

// recent is a set of bounded size. The network that was added least recently is removed first.
type recent struct {
	most  int
	at    map[netip.Prefix]*list.Element
	order *list.List
}

func newRecent(most int) recent { return recent{most, map[netip.Prefix]*list.Element{}, list.New()} }

func (r *recent) has(source netip.Prefix) bool { return r.at[source] != nil }

func (r *recent) add(source netip.Prefix) {
	if at := r.at[source]; at != nil {
		r.order.MoveToFront(at)
		return
	}
	if r.order.Len() >= r.most {
		delete(r.at, r.order.Remove(r.order.Back()).(netip.Prefix))
	}
	r.at[source] = r.order.PushFront(source)
}
