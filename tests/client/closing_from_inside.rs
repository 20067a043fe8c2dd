//! Listeners that close what they are called by (C-42): nothing ever waits for itself.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{Connection, Consumer, Error, Session, with_session};
use tokio::sync::{Semaphore, mpsc};

use crate::support::{TestBroker, eventually, firsts, nth, others_run, queue, send_text, within};

/// A listener at `q` that does something to what it is called by, beside one at `busy` that works until it is told to
/// end.
struct Scene {
    broker: TestBroker,
    connection: Option<Connection>,
    session: Session,
    consumer: Arc<Consumer>,
    busy_end: Arc<Semaphore>,
    busy_ended: Arc<AtomicBool>,
    busy_consumer: Consumer,
}

impl Scene {
    async fn start() -> Self {
        let broker = TestBroker::start();
        let connection = broker.connect().await;
        let busy_session = connection.create_session(Auto).await.unwrap();
        let busy_consumer = busy_session.create_consumer(&queue("busy")).await.unwrap();
        let (busy_started, busy_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let busy_ended = Arc::new(AtomicBool::new(false));
        let (started, end, ended) =
            (Arc::clone(&busy_started), Arc::clone(&busy_end), Arc::clone(&busy_ended));
        busy_consumer
            .set_message_listener(move |_| {
                let (started, end, ended) = (Arc::clone(&started), Arc::clone(&end), Arc::clone(&ended));
                async move {
                    started.add_permits(1);
                    end.acquire().await?.forget();
                    ended.store(true, Ordering::SeqCst);
                    Ok(())
                }
            })
            .unwrap();
        broker.send_numbered(&queue("busy"), 1).await;
        within(busy_started.acquire()).await.unwrap().forget();
        let session = connection.create_session(Auto).await.unwrap();
        let consumer = Arc::new(session.create_consumer(&queue("q")).await.unwrap());
        Self { broker, connection: Some(connection), session, consumer, busy_end, busy_ended, busy_consumer }
    }

    fn connection(&self) -> Connection {
        self.session.connection()
    }

    /// Calls `act` from inside the listener for m1 of three messages, and waits until it has returned there.
    async fn run<F, R>(&self, act: F)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (returned, mut has_returned) = mpsc::unbounded_channel();
        self.consumer
            .set_message_listener(move |_| {
                let (returned, act) = (returned.clone(), act());
                async move {
                    // Only the first one's return is waited for.
                    returned.send(act.await).ok();
                    Ok(())
                }
            })
            .unwrap();
        self.broker.send_numbered(&queue("q"), 3).await;
        within(has_returned.recv()).await.unwrap().unwrap();
    }

    /// The message at hand was acknowledged, and the others returned as if nobody had seen them.
    async fn one_is_handled_and_two_are_back(&self) {
        let q = queue("q");
        self.broker.until(&q, |counts| counts.acknowledged == 1 && counts.in_flight == 0).await;
        assert_eq!(self.broker.drain(&q).await, firsts(2..=3));
    }

    async fn end_of_the_busy_one(&self) {
        assert!(!self.busy_ended.load(Ordering::SeqCst));
        self.busy_end.add_permits(1);
        self.broker.until(&queue("busy"), |counts| counts.acknowledged == 1).await;
        assert!(self.busy_ended.load(Ordering::SeqCst));
    }
}

#[tokio::test]
async fn a_listener_closes_its_consumer_and_its_message_is_still_acknowledged() {
    let scene = Scene::start().await;
    let consumer = Arc::clone(&scene.consumer);
    scene
        .run(move || {
            let consumer = Arc::clone(&consumer);
            async move { consumer.close().await }
        })
        .await;
    scene.one_is_handled_and_two_are_back().await;
    scene.end_of_the_busy_one().await;
    scene.busy_consumer.close().await.unwrap();
}

#[tokio::test]
async fn a_listener_closes_its_session_and_its_message_is_still_acknowledged() {
    let scene = Scene::start().await;
    let session = scene.session.clone();
    scene
        .run(move || {
            let session = session.clone();
            async move { session.close().await }
        })
        .await;
    scene.one_is_handled_and_two_are_back().await;
    assert!(matches!(scene.session.create_producer(None).await, Err(Error::IllegalState { .. })));
    scene.end_of_the_busy_one().await;
}

#[tokio::test]
async fn a_listener_closes_its_connection_which_waits_for_the_other_listener() {
    let scene = Scene::start().await;
    let connection = scene.connection();
    scene
        .run(move || {
            let connection = connection.clone();
            async move { connection.close().await }
        })
        .await;
    others_run().await;
    assert!(scene.connection().is_open(), "a listener of it is still at work");
    scene.end_of_the_busy_one().await;
    scene.one_is_handled_and_two_are_back().await;
    eventually(
        "the connection",
        || if scene.connection().is_open() { Err("open".to_owned()) } else { Ok(()) },
    )
    .await;
}

#[tokio::test]
async fn a_listener_stops_its_connection_and_start_goes_on() {
    let scene = Scene::start().await;
    let connection = scene.connection();
    scene
        .run(move || {
            let connection = connection.clone();
            async move { connection.stop() }
        })
        .await;
    let q = queue("q");
    scene.broker.until(&q, |counts| counts.acknowledged == 1).await;
    others_run().await;
    assert_eq!((scene.broker.counts(&q).acknowledged, scene.broker.counts(&q).in_flight), (1, 2));
    scene.end_of_the_busy_one().await;
    scene.connection().start().unwrap();
    scene.broker.until(&q, |counts| counts.acknowledged >= 2).await;
}

#[tokio::test]
async fn a_listener_drops_the_last_handles_of_its_connection() {
    let mut scene = Scene::start().await;
    let q = queue("q");
    let (done, mut is_done) = mpsc::unbounded_channel();
    // All handles but the busy consumer's, which keep the connection: moved into the listener and dropped there.
    let handles = std::sync::Mutex::new(None);
    let handles = Arc::new(handles);
    let in_listener = Arc::clone(&handles);
    scene
        .consumer
        .set_message_listener(move |_| {
            drop(in_listener.lock().unwrap().take());
            let sent = done.send(());
            async move { Ok(sent?) }
        })
        .unwrap();
    let Scene { broker, connection, session, consumer, busy_end, busy_consumer, .. } = &mut scene;
    let connection = connection.take();
    busy_end.add_permits(1);
    broker.until(&queue("busy"), |counts| counts.acknowledged == 1).await;
    busy_consumer.close().await.unwrap();
    let own = session.connection().create_session(Auto).await.unwrap();
    let placeholder = own.create_consumer(&queue("unused")).await.unwrap();
    let consumer = std::mem::replace(consumer, Arc::new(placeholder));
    let session = std::mem::replace(session, own);
    *handles.lock().unwrap() = Some((connection, session, consumer));
    broker.send_numbered(&q, 3).await;
    within(is_done.recv()).await.unwrap();
    broker.until(&q, |counts| counts.acknowledged == 1 && counts.in_flight == 0).await;
    assert_eq!(broker.drain(&q).await, firsts(2..=3));
}

#[tokio::test]
async fn a_listener_stops_the_embedded_broker() {
    let scene = Scene::start().await;
    let broker = scene.broker.broker.clone();
    scene
        .run(move || {
            broker.stop();
            async { Ok(()) }
        })
        .await;
    assert!(!scene.connection().is_open());
    scene.busy_end.add_permits(1);
    within(scene.connection().close()).await.unwrap();
}

#[tokio::test]
async fn two_listeners_that_close_their_connection_at_the_same_time_both_return() {
    let broker = TestBroker::start();
    let connection = broker.connect().await;
    let meeting = Arc::new(tokio::sync::Barrier::new(2));
    let mut consumers = Vec::new();
    for name in ["one", "other"] {
        let session = connection.create_session(Auto).await.unwrap();
        let consumer = session.create_consumer(&queue(name)).await.unwrap();
        let (connection, meeting) = (connection.clone(), Arc::clone(&meeting));
        consumer
            .set_message_listener(move |_| {
                let (connection, meeting) = (connection.clone(), Arc::clone(&meeting));
                async move {
                    meeting.wait().await;
                    connection.close().await?;
                    Ok(())
                }
            })
            .unwrap();
        consumers.push(consumer);
    }
    broker.send_numbered(&queue("one"), 1).await;
    broker.send_numbered(&queue("other"), 1).await;
    for name in ["one", "other"] {
        broker.until(&queue(name), |counts| counts.acknowledged == 1).await;
    }
    eventually("the connection", || if connection.is_open() { Err("open".to_owned()) } else { Ok(()) }).await;
}

#[tokio::test]
async fn a_close_from_outside_waits_for_the_handler_and_lets_it_settle() {
    let broker = TestBroker::start();
    let (q, out) = (queue("q"), queue("out"));
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    let (end, close) = (Arc::new(Semaphore::new(0)), session.clone());
    let may_end = Arc::clone(&end);
    let handler = session.run_handler(async {
        may_end.acquire().await.unwrap().forget();
        send_text(delivery.session(), &out, "answer").await;
        delivery.session().commit().await.unwrap();
    });
    let closing = async {
        others_run().await;
        let mut closing = std::pin::pin!(close.close());
        std::future::poll_fn(|cx| {
            assert!(closing.as_mut().poll(cx).is_pending(), "the handler is at work");
            std::task::Poll::Ready(())
        })
        .await;
        assert!(matches!(consumer.receive().await, Err(Error::IllegalState { .. })), "nothing new is begun");
        end.add_permits(1);
        closing.await.unwrap();
    };
    within(async { tokio::join!(handler, closing) }).await;
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&out).enqueued), (1, 1));
    assert!(matches!(session.commit().await, Err(Error::IllegalState { .. })));
}

#[tokio::test]
async fn a_blocking_handler_that_closes_its_session_returns() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    let runtime = tokio::runtime::Handle::current();
    let blocking = session.clone();
    let handler = tokio::task::spawn_blocking(move || {
        blocking.run_blocking_handler(|| {
            assert!(Session::current().is_some_and(|current| current.is_same(&blocking)));
            runtime.block_on(async {
                blocking.close().await.unwrap();
                delivery.acknowledge().await.unwrap();
            });
        });
    });
    within(handler).await.unwrap();
    broker.until(&q, |counts| counts.acknowledged == 1 && counts.in_flight == 0).await;
    assert_eq!(broker.drain(&q).await, firsts(2..=2));
}

#[tokio::test]
async fn the_current_session_is_that_of_the_handler_and_of_nobody_else() {
    let broker = TestBroker::start();
    let session = broker.session(Transacted).await;
    assert!(Session::current().is_none());
    let is_current = |session: &Session| Session::current().is_some_and(|current| current.is_same(session));
    session
        .run_handler(async {
            assert!(is_current(&session));
            tokio::spawn(async { assert!(Session::current().is_none(), "a spawned task does not join") })
                .await
                .unwrap();
            let carried = session.clone();
            tokio::spawn(with_session(session.clone(), async move {
                assert!(Session::current().is_some_and(|current| current.is_same(&carried)));
            }))
            .await
            .unwrap();
        })
        .await;
    assert!(Session::current().is_none());
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_handler_that_is_dropped_at_work_holds_up_no_close() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    let handler = tokio::spawn({
        let session = session.clone();
        async move {
            session
                .run_handler(async move {
                    let _held = delivery;
                    std::future::pending::<()>().await;
                })
                .await;
        }
    });
    others_run().await;
    handler.abort();
    within(session.close()).await.unwrap();
    assert_eq!(broker.drain(&q).await, [nth("m1", 2)]);
}

#[tokio::test]
async fn a_handler_within_a_handler_closes_the_outer_session_without_waiting_for_it() {
    let broker = TestBroker::start();
    let connection = broker.connect().await;
    let outer = connection.create_session(Auto).await.unwrap();
    let inner = connection.create_session(Auto).await.unwrap();
    let nested = outer.run_handler(inner.run_handler(async { outer.close().await }));
    within(nested).await.unwrap();
    // Closed twice is closed once; this one waits for the first to have taken effect.
    within(outer.close()).await.unwrap();
    assert!(matches!(outer.acknowledge().await, Err(Error::IllegalState { .. })));
    inner.acknowledge().await.unwrap();
}

#[tokio::test]
async fn a_task_that_a_handler_waits_for_closes_the_session_without_waiting_for_the_handler() {
    let broker = TestBroker::start();
    let connection = broker.connect().await;
    let session = connection.create_session(Auto).await.unwrap();
    let handler = session.run_handler(async {
        let own = session.clone();
        tokio::spawn(with_session(session.clone(), async move { own.close().await })).await.unwrap()
    });
    within(handler).await.unwrap();
    within(session.close()).await.unwrap();
    assert!(matches!(session.acknowledge().await, Err(Error::IllegalState { .. })));
}
