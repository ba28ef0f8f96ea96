//! The updates of the batch methods: the shared ADMM (`admm.rs`) on all codes, with one system per method.
//!
//! Statistics are formed anew at every update, since all codes have changed; V and Theta start where the last update ended.

use super::admm::{Admm, System, mean_power, saved};
use super::{Update, Updated};
use crate::state::State;
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Real, Result, Sample, Shape};

/// Stands for a system that holds all codes.
pub trait AllCodes<T: Real>: Sized + Send {
    /// Returns the default rho, relative to the mean of |z(p)|^2 over samples, filters and frequencies, for N samples.
    fn relative_rho(n: usize) -> f64;

    /// Starts without codes, for samples of one shape.
    fn new(n_filters: usize, shape: Shape) -> Self;

    /// Returns the samples' shape.
    fn shape(&self) -> Shape;

    /// Forgets all codes.
    fn clear(&mut self);

    /// Adds one sample with its code.
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>) -> Result<()>;

    /// Is told that all codes are there: computes what depends on them, on rho and on the dictionary to start from; `reset`
    /// says that duals and V start from zero.
    fn prepare(&mut self, rho: f64, dictionary: &Dictionary<T>, reset: bool);

    /// Adds what the system remembers from one update to the next.
    fn save<'a>(&'a self, state: State<'a>) -> State<'a> {
        state
    }

    /// Takes it over.
    fn restore(&mut self, _state: &State<'_>) -> Result<()> {
        Ok(())
    }
}

/// Updates the dictionary as a batch method does.
pub struct Batched<T: Real, S> {
    config: UpdateConfig,
    /// Fixed at the first update.
    rho: Option<f64>,
    /// The sum of the codes' mean powers, and their number.
    power: f64,
    n: usize,
    /// Everything that depends on the samples' shape.
    plan: Option<Admm<T, S>>,
}

impl<T: Real, S> Batched<T, S> {
    /// Makes an update without codes; they take the shape of the first sample.
    pub fn new(config: UpdateConfig) -> Self {
        Batched { rho: config.rho, config, power: 0.0, n: 0, plan: None }
    }
}

impl<T: Real, S: System<T> + AllCodes<T>> Update<T> for Batched<T, S> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        dictionary.check_sample_shape(sample.shape())?;
        let plan =
            self.plan.get_or_insert_with(|| Admm::new(dictionary, S::new(dictionary.n_filters(), sample.shape())));
        plan.system.absorb(sample, code)?;
        self.power += mean_power(code);
        self.n += 1;
        Ok(())
    }

    fn forget(&mut self) {
        (self.power, self.n) = (0.0, 0);
        if let Some(plan) = &mut self.plan {
            plan.system.clear();
        }
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let Some(plan) = self.plan.as_mut().filter(|_| self.n > 0) else { return Updated::default() };
        let rho = *self.rho.get_or_insert_with(|| rounded(S::relative_rho(self.n) * self.power / self.n as f64));
        plan.system.prepare(rho, dictionary, self.config.reset);
        plan.run(dictionary, &self.config)
    }

    fn state(&self) -> State<'_> {
        match (&self.plan, self.rho) {
            (Some(plan), Some(rho)) => plan.system.save(plan.save(State::default(), plan.system.shape(), rho)),
            _ => State::default(),
        }
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        // Before the first update there are samples, but nothing to go on with.
        if !state.has("dual") {
            return Ok(());
        }
        let (shape, rho) = saved(state, dictionary)?;
        let mut plan = Admm::new(dictionary, S::new(dictionary.n_filters(), shape));
        plan.restore(state)?;
        plan.system.restore(state)?;
        (self.rho, self.plan) = (Some(rho), Some(plan));
        Ok(())
    }
}

/// Returns a number to three digits. Checkpoints once needed it so; runs repeat to the bit because it stays.
fn rounded(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}
