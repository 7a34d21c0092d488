// The client's end of GatewayStreamService.Connect: keeps one stream open to any of the replicas,
// says hello, sends heartbeats and what it is given, hands on what comes. It knows nothing of what
// the messages mean but for hello, welcome, heartbeat and goodbye.
//
//   endpoint after endpoint: connect -> hello -> welcome -> messages both ways -> lost -> pause
//
// Threads: two of its own. `hello`, `admit`, `connected`, `received`, `lost` and `replaced` are
// called by the first, in this order, never at once; `heartbeat` by the second. None may wait for
// the stream, nor stop it.
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

// Paths of PEM files, read anew for every connection: certificates are replaced while we run.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

struct StreamOptions {
  std::vector<std::string> endpoints;  // host:port, 1..limits::kMaxEndpoints
  TlsFiles tls;
  bool insecure_loopback = false;  // plain text, to loopback addresses only
  Nanos opening = limits::kStreamOpening;
  Nanos backoff_least = limits::kStreamBackoffLeast;  // doubled per failure, each with jitter
  Nanos backoff_most = limits::kStreamBackoffMost;
};

struct StreamCallbacks {
  std::function<wire::StreamHello()> hello;
  // By the welcome, before connected(). Error: the stream ends for that. May be null: all are
  // admitted.
  std::function<Result<Admission>(const wire::StreamWelcome&)> admit;
  // After the welcome and before the first message: all observed state is sent here.
  std::function<void(const wire::StreamWelcome&)> connected;
  std::function<void(wire::ConnectResponse)> received;
  // After connected(); whatever was sent or queued may have arrived or not.
  std::function<void(const std::string& why)> lost;
  std::function<wire::StreamHeartbeat()> heartbeat;
  // After lost(): the replica said that another process has replaced this one. May be null.
  std::function<void(const std::string& why)> replaced;
};

class Stream {
 public:
  // Not begun yet, so that callbacks find the stream in its place. Error: options that can't work,
  // with the mend. What a network or a replica does isn't one.
  static Result<std::unique_ptr<Stream>> create(StreamOptions options, StreamCallbacks callbacks);
  virtual ~Stream() = default;  // stops
  virtual void begin() = 0;

  // A request with an id. False: provably not sent, now or ever. True: it may arrive, until lost().
  virtual bool request(wire::ConnectRequest message) = 0;
  // State. Dropped without a stream, for connected() sends it again; one message too many ends the
  // stream for the same reason.
  virtual void observe(wire::ConnectRequest message) = 0;
  // Ends the present stream, to begin one with another hello.
  virtual void reconnect(const std::string& why) = 0;
  virtual bool connected() const = 0;
  virtual void stop() = 0;  // no callback runs once it returns
};

}  // namespace sluice::control
