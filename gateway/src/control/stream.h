// The client side of GatewayStreamService.Connect. It keeps one stream open to one of the replicas,
// sends the hello, heartbeats and queued messages, and passes on received ones. It interprets only
// hello, welcome, heartbeat and goodbye.
//
// For one endpoint after the other: connect, hello, welcome, messages both ways, loss, pause.
//
// Threads: two of its own. The first calls `hello`, `admit`, `connected`, `received`, `lost` and
// `replaced`, in this order and one at a time; the second calls `heartbeat`. No callback may wait
// for the stream or stop it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/result.h"
#include "control/membership.h"
#include "control/wire.h"

namespace sluice::control {

// Paths of PEM files. They are read again for every connection, because certificates are renewed
// while the gateway runs.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

struct StreamOptions {
  std::vector<std::string> endpoints;  // "host:port"; 1 to limits::kMaxEndpoints
  TlsFiles tls;
  bool insecure_loopback = false;  // plain text; permitted for loopback addresses only
  Nanos opening = limits::kStreamOpening;
  // doubles with each failure; half of it is jitter
  Nanos backoff_least = limits::kStreamBackoffLeast;
  Nanos backoff_most = limits::kStreamBackoffMost;
};

struct StreamCallbacks {
  std::function<wire::StreamHello()> hello;
  // Called after the welcome, before connected(). Error: the stream ends for this reason. Null:
  // every welcome is accepted.
  std::function<Result<Admission>(const wire::StreamWelcome&)> admit;
  // Called after the welcome and before the first message. Sends all observed state.
  std::function<void(const wire::StreamWelcome&)> connected;
  std::function<void(wire::ConnectResponse)> received;
  // Called after connected() when the stream has ended. Sent or queued messages may or may not have
  // arrived.
  std::function<void(const std::string& why)> lost;
  std::function<wire::StreamHeartbeat()> heartbeat;
  // Called after lost() if the replica said that another process replaced this one. May be null.
  std::function<void(const std::string& why)> replaced;
};

class Stream {
 public:
  // Returns a stream that has not begun, so that callbacks can already use the pointer. Error:
  // invalid options; the text says how to correct them. Failures of the network or a replica are
  // not errors; the stream retries.
  static Result<std::unique_ptr<Stream>> create(StreamOptions options, StreamCallbacks callbacks);
  virtual ~Stream() = default;  // stops the stream
  virtual void begin() = 0;

  // Sends a request with an id. False: it was not sent and never will be. True: it may arrive until
  // lost() is called.
  virtual bool request(wire::ConnectRequest message) = 0;
  // Sends observed state. Without a stream it is dropped, because connected() sends all state
  // again. A queue overflow ends the stream, for the same reason.
  virtual void observe(wire::ConnectRequest message) = 0;
  // Ends the current stream and begins one with a new hello.
  virtual void reconnect(const std::string& why) = 0;
  virtual bool connected() const = 0;
  virtual void stop() = 0;  // no callback runs after it returns
};

}  // namespace sluice::control
