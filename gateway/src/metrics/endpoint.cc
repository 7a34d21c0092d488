#include "metrics/endpoint.h"

#include <netdb.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace sluice::metrics {
namespace {

// Connects and hangs up.
void knock(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    [[maybe_unused]] const int connected = ::connect(fd, found->ai_addr, found->ai_addrlen);
    ::close(fd);
  }
  freeaddrinfo(found);
}

std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (!host.empty() && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

class HttpEndpoint final : public Endpoint {
 public:
  HttpEndpoint(const std::string& address, Sources sources)
      : host_(host_of(address)),
        lun_latency_(std::make_shared<LunLatencyCollector>(*sources.exports)),
        collector_(std::make_shared<Collector>(std::move(sources))) {
    exposer_.emplace(std::vector<std::string>{"listening_ports", address, "num_threads", "2",
                                              "request_timeout_ms", "5000", "enable_keep_alive",
                                              "no"});
    exposer_->RegisterCollectable(collector_);
    exposer_->RegisterCollectable(lun_latency_, "/metrics/lun-latency");
  }

  // CivetWeb sees that it shall stop after it accepted a connection, else only every two seconds:
  // too long a pause in a restart.
  ~HttpEndpoint() override {
    const int at = port();
    std::mutex mutex;
    std::condition_variable ended;
    bool done = false;
    std::thread knocker([&] {
      std::unique_lock lock(mutex);
      while (!ended.wait_for(lock, std::chrono::milliseconds(10), [&] { return done; })) {
        knock(host_, at);
      }
    });
    exposer_.reset();
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    ended.notify_all();
    knocker.join();
  }

  int port() const override { return exposer_->GetListeningPorts().front(); }

 private:
  const std::string host_;
  std::shared_ptr<LunLatencyCollector> lun_latency_;
  std::shared_ptr<Collector> collector_;
  std::optional<prometheus::Exposer> exposer_;
};

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::start(const std::string& address, Sources sources) {
  try {
    return std::unique_ptr<Endpoint>(std::make_unique<HttpEndpoint>(address, std::move(sources)));
  } catch (const std::exception&) {
    // The library says only "null context when constructing CivetServer".
    return Error{"can't serve metrics at " + address + "; is the address in use?"};
  }
}

}  // namespace sluice::metrics
