//! The beans of an application before any of them is made.

use std::sync::Arc;

use corriere_core::ConnectionFactory;
use corriere_templates::{ConverterType, JmsTemplate, JmsTemplateBuilder, MessageConverter};

use super::PlannedBean;
use super::type_names::{check_type_name, converter_types};
use crate::beans::{
    Bean, BeanBuildError, BeanConstructor, BeanName, BeanOwner, BeanRequest, BeanSettings, BeanType, Beans,
    MadeBean, Need, NeededFor, Node, Recipe, Source, User, Wiring, make, prepare, wire,
};
use crate::config::{BeanTable, ConfigError, MessageConverterTable, Place, Problems, Setting};
use crate::nearest::nearest;

/// A bean that the program hands over.
#[derive(Clone, Debug)]
pub(super) struct GivenBean {
    pub(super) name: BeanName,
    pub(super) is_named_after_type: bool,
    pub(super) bean: Arc<MadeBean>,
}

impl GivenBean {
    /// One with a name of its own.
    pub(super) fn named(name: &str, bean: MadeBean) -> Self {
        Self { name: name.into(), is_named_after_type: false, bean: Arc::new(bean) }
    }
}

/// What writes and reads the messages of a template or a listener.
#[derive(Clone, Debug)]
pub(super) enum PlannedConverter {
    /// It is there.
    Made(Arc<dyn MessageConverter>),
    /// A bean that is still to be made, by its name, and what asks for it.
    Bean(Setting<String>),
}

/// The need for the message converter of this name.
pub(super) fn converter_need(named: &Setting<String>) -> Need {
    Need {
        needed_for: NeededFor::Key { name: "message_converter", place: named.place.clone() },
        request: BeanRequest::of::<dyn MessageConverter>(),
        name: Some(named.value.clone()),
    }
}

/// A template whose converter may still have to be made.
#[derive(Debug)]
pub(super) struct PlannedTemplate {
    pub(super) builder: JmsTemplateBuilder,
    pub(super) converter: PlannedConverter,
}

/// The beans of an application, and who gets which of them.
#[derive(Default)]
pub(super) struct WiredBeans {
    recipes: Vec<Recipe>,
    wiring: Wiring,
    /// In the order in which they are made.
    described: Vec<PlannedBean>,
}

impl WiredBeans {
    /// Makes them; see [`make`].
    pub(super) async fn make(self, time: std::time::Duration) -> Result<Beans, ConfigError> {
        make(self.recipes, &self.wiring, time).await
    }

    /// All of them, in the order in which they are made.
    pub(super) fn described(self) -> Vec<PlannedBean> {
        self.described
    }
}

/// The beans of an application as they are gathered.
#[derive(Default)]
pub(super) struct BeanPlan {
    nodes: Vec<Node>,
    /// Beside the nodes; `None` for what is broken.
    recipes: Vec<Option<Recipe>>,
}

impl BeanPlan {
    /// What the program hands over.
    pub(super) fn add_given(&mut self, given: &GivenBean) {
        let name = given.name.to_string();
        let owner = if given.is_named_after_type {
            BeanOwner::NamedAfterType { name }
        } else {
            BeanOwner::Program { name }
        };
        let source = Source::Given(Arc::clone(&given.bean));
        self.add(&given.name, owner, given.bean.meets().collect(), Vec::new(), Some(source));
    }

    /// A connection factory: `place` is where the configuration has it, and `None` stands for one whose error is said.
    pub(super) fn add_factory(
        &mut self,
        name: &str,
        place: Option<Place>,
        factory: Option<&ConnectionFactory>,
    ) {
        let owner =
            place.map_or_else(|| BeanOwner::Program { name: name.to_owned() }, BeanOwner::Configuration);
        let source =
            factory.map(|factory| Source::Given(Arc::new(MadeBean::new(Bean::new(factory.clone())))));
        self.add(name, owner, vec![BeanRequest::of::<ConnectionFactory>()], Vec::new(), source);
    }

    /// A template; `None` stands for one whose error is said.
    pub(super) fn add_template(&mut self, name: &str, place: Place, template: Option<PlannedTemplate>) {
        let needs = match &template {
            Some(PlannedTemplate { converter: PlannedConverter::Bean(named), .. }) => {
                vec![converter_need(named)]
            }
            _ => Vec::new(),
        };
        let source = template.map(|PlannedTemplate { builder, converter }| {
            let constructor: BeanConstructor = Box::new(move |mut beans| {
                let made = move || {
                    let converter = match converter {
                        PlannedConverter::Made(converter) => converter,
                        PlannedConverter::Bean(_) => beans.take::<dyn MessageConverter>()?.into_arc(),
                    };
                    let template = builder.message_converter(converter).build();
                    let template: JmsTemplate =
                        template.map_err(|error| BeanBuildError::Constructor(error.into()))?;
                    Ok(MadeBean::new(Bean::new(template)))
                };
                Box::pin(std::future::ready(made()))
            });
            Source::Constructor(constructor)
        });
        let owner = BeanOwner::Configuration(place);
        self.add(name, owner, vec![BeanRequest::of::<JmsTemplate>()], needs, source);
    }

    /// A bean of the configuration.
    pub(super) fn add_bean(&mut self, name: &str, table: &BeanTable, problems: &mut Problems) {
        let found = bean_type(&table.bean_type, "bean type", BeanType::all().collect(), problems);
        self.add_of_type(name, &table.place, found, &table.settings, problems);
    }

    /// A message converter of the configuration.
    pub(super) fn add_converter(
        &mut self,
        name: &str,
        table: &MessageConverterTable,
        problems: &mut Problems,
    ) {
        let named = &table.converter_type;
        if let Err(error) = check_type_name("message converter type", named, converter_types()) {
            problems.push(error);
            self.add_unknown(name, &table.place, vec![BeanRequest::of::<dyn MessageConverter>()]);
            return;
        }
        match ConverterType::named(&named.value).next() {
            Some(found) => self.add_plain_converter(name, table, found, problems),
            None => {
                let found = BeanType::all().find(|found| found.name == named.value);
                let found = found.ok_or_else(|| vec![BeanRequest::of::<dyn MessageConverter>()]);
                self.add_of_type(name, &table.place, found, &table.settings, problems);
            }
        }
    }

    /// A message converter that is asked for by its type and needs no table.
    pub(super) fn add_converter_of_type(
        &mut self,
        found: &'static BeanType,
        place: &Place,
        problems: &mut Problems,
    ) {
        self.add_of_type(found.name, place, Ok(found), &BeanSettings::empty(), problems);
    }

    /// Whether there is a message converter of this name, or could be once what is wrong with it is mended.
    pub(super) fn has_converter(&self, name: &str) -> bool {
        let request = BeanRequest::of::<dyn MessageConverter>();
        let mut named = self.nodes.iter().filter(|node| &*node.name == name);
        named.any(|node| node.is_guess || node.meets.contains(&request))
    }

    /// The names of all message converters.
    pub(super) fn converters(&self) -> impl Iterator<Item = &str> {
        let request = BeanRequest::of::<dyn MessageConverter>();
        let nodes = self.nodes.iter().filter(move |node| node.meets.contains(&request));
        nodes.map(|node| &*node.name)
    }

    /// Settles who gets which bean; `None` when anything is wrong with one of them.
    pub(super) fn wire(self, users: &[User], problems: &mut Problems) -> Option<WiredBeans> {
        match wire(&self.nodes, users) {
            Ok(wiring) => {
                let recipes = self.recipes.into_iter().collect::<Option<Vec<_>>>()?;
                let ordered = wiring.order.iter().filter_map(|index| self.nodes.get(*index));
                let described = ordered.map(|node| PlannedBean {
                    name: node.name.to_string(),
                    type_name: node.meets.first().map_or("", |own| (own.type_name)()),
                });
                Some(WiredBeans { described: described.collect(), recipes, wiring })
            }
            Err(errors) => {
                for error in errors {
                    problems.push(ConfigError::Wiring(Box::new(error)));
                }
                None
            }
        }
    }

    /// One of a registered type, or one whose type is not known, with what it could then be asked for by.
    fn add_of_type(
        &mut self,
        name: &str,
        place: &Place,
        found: Result<&'static BeanType, Vec<BeanRequest>>,
        settings: &BeanSettings,
        problems: &mut Problems,
    ) {
        let found = match found {
            Ok(found) => found,
            Err(guessed) => return self.add_unknown(name, place, guessed),
        };
        let constructor = prepare(|| (found.prepare)(settings.clone()));
        let constructor = constructor.map_err(|source| {
            let place = settings.place_of(&source).unwrap_or(place).clone();
            problems.push(ConfigError::Bean { place, source });
        });
        let needs = Need::of_arguments(found.arguments);
        let owner = BeanOwner::Configuration(place.clone());
        self.add(name, owner, found.meets(), needs, constructor.ok().map(Source::Constructor));
    }

    fn add_plain_converter(
        &mut self,
        name: &str,
        table: &MessageConverterTable,
        found: &'static ConverterType,
        problems: &mut Problems,
    ) {
        let source = match table.settings.clone().none() {
            Ok(()) => Some(Source::Given(Arc::new(MadeBean::converter((found.build)().into())))),
            Err(source) => {
                let place = table.settings.place_of(&source).unwrap_or(&table.place).clone();
                problems.push(ConfigError::Bean { place, source });
                None
            }
        };
        let owner = BeanOwner::Configuration(table.place.clone());
        self.add(name, owner, vec![BeanRequest::of::<dyn MessageConverter>()], Vec::new(), source);
    }

    fn add_unknown(&mut self, name: &str, place: &Place, guessed: Vec<BeanRequest>) {
        self.add(name, BeanOwner::Configuration(place.clone()), guessed, Vec::new(), None);
        if let Some(added) = self.nodes.last_mut() {
            added.is_guess = true;
        }
    }

    fn add(
        &mut self,
        name: &str,
        owner: BeanOwner,
        meets: Vec<BeanRequest>,
        needs: Vec<Need>,
        source: Option<Source>,
    ) {
        let place = match &owner {
            BeanOwner::Configuration(place) => place.clone(),
            _ => Place::in_code(format!("beans.{name}")),
        };
        let name = BeanName::from(name);
        self.nodes.push(Node { name: Arc::clone(&name), owner, meets, needs, is_guess: false });
        self.recipes.push(source.map(|source| Recipe { name, place, source }));
    }
}

/// The one type of this name, or what those could be asked for by that may have been meant.
fn bean_type(
    named: &Setting<String>,
    what: &'static str,
    types: Vec<&'static BeanType>,
    problems: &mut Problems,
) -> Result<&'static BeanType, Vec<BeanRequest>> {
    let registered = types.iter().map(|found| (found.name, (found.bean.type_name)()));
    let checked = check_type_name(what, named, registered);
    let meant = match &checked {
        Ok(()) => Some(named.value.clone()),
        Err(_) if types.iter().any(|found| found.name == named.value) => Some(named.value.clone()),
        Err(_) => nearest(&named.value, types.iter().map(|found| found.name)),
    };
    let mut found = types.into_iter().filter(|found| meant.as_deref() == Some(found.name));
    match (checked, found.next()) {
        (Ok(()), Some(only)) => Ok(only),
        (checked, first) => {
            if let Err(error) = checked {
                problems.push(error);
            }
            Err(first.into_iter().chain(found).flat_map(BeanType::meets).collect())
        }
    }
}
