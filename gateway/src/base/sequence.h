// Steps that wait for events, written as one function that reads from top to bottom: a coroutine
// without a result. For rare operations, because each wait allocates memory.
//
//   Sequence give_up(std::shared_ptr<Device> device) {
//     co_await drained(*device);                      // functions that return Until<>
//     const bool ok = co_await flushed(*device);      // ... and Until<bool>
//     device->finish(ok);
//   }
//
// Arguments are copied into the coroutine if the function takes them by value, as it must for all
// that can end before the coroutine does.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace sluice {

// Runs when it is called, until its first wait. Its end is not reported.
class Sequence {
 public:
  struct promise_type {
    Sequence get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    // Product code throws no exceptions of its own; one that arrives here is a defect.
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// The wait of a sequence for one event. T: what the event brings.
template <class T = void>
class Until {
 public:
  static constexpr bool kVoid = std::is_void_v<T>;
  using Value = std::conditional_t<kVoid, std::monostate, T>;
  using Done = std::conditional_t<kVoid, std::function<void()>, std::function<void(Value)>>;
  // Starts what the sequence waits for. It gets a function to call once, on any thread: the
  // sequence then continues within that call. If all copies of the function are destroyed instead,
  // as those of a reactor that ended, the sequence ends at its wait and releases what it holds.
  using Start = std::function<void(Done)>;

  explicit Until(Start start) : start_(std::move(start)) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> sequence) {
    // The sequence may continue on another thread before start() returns, which ends this object.
    const Start start = std::move(start_);
    auto waiting = std::make_shared<Waiting>(sequence);
    if constexpr (kVoid) {
      start([waiting] { waiting->resume(); });
    } else {
      start([this, waiting](Value value) {
        value_.emplace(std::move(value));
        waiting->resume();
      });
    }
  }
  T await_resume() {
    if constexpr (!kVoid) return std::move(*value_);
  }

 private:
  class Waiting {
   public:
    explicit Waiting(std::coroutine_handle<> sequence) : sequence_(sequence) {}
    ~Waiting() {
      if (sequence_) sequence_.destroy();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    void resume() { std::exchange(sequence_, nullptr).resume(); }

   private:
    std::coroutine_handle<> sequence_;
  };

  Start start_;
  std::optional<Value> value_;
};

}  // namespace sluice
